"""The module definition: the JSON that SpacetimeDB's tools read, in both versions."""

from __future__ import annotations

from typing import Any

import pytest

from gamedb import Module, ReducerContext
from gamedb.codegen.module_def import module_def, schema_json
from gamedb.wire.sats_json import dumps, loads

UNIT = {"Product": {"elements": []}}


def section(module: Module, name: str) -> Any:
    for found in schema_json(module.resolve(), 10)["sections"]:
        if name in found:
            return found[name]
    return None


def test_the_definition_has_its_version_around_it_and_the_schema_is_bare(module: Module) -> None:
    resolved = module.resolve()

    assert module_def(resolved) == {"V10": schema_json(resolved, 10)}


def test_it_is_json_and_always_the_same(module: Module) -> None:
    text = dumps(module_def(module.resolve()))

    assert loads(text) == module_def(module.resolve())
    assert dumps(module_def(module.resolve())) == text


def test_a_table_says_key_indexes_constraints_sequence_and_defaults(module: Module) -> None:
    account = section(module, "Tables")[0]

    assert account == {
        "source_name": "account",
        "product_type_ref": 0,
        "primary_key": [0],
        "indexes": [
            {
                "source_name": {"some": "account_id_idx_btree"},
                "accessor_name": {"some": "id"},
                "algorithm": {"BTree": [0]},
            },
            {
                "source_name": {"some": "account_email_idx_btree"},
                "accessor_name": {"some": "email"},
                "algorithm": {"BTree": [1]},
            },
            {
                "source_name": {"some": "account_team_id_idx_btree"},
                "accessor_name": {"some": "team_id"},
                "algorithm": {"BTree": [2]},
            },
            {
                "source_name": {"some": "account_team_id_status_idx_btree"},
                "accessor_name": {"some": "by_team_id_status"},
                "algorithm": {"BTree": [2, 4]},
            },
        ],
        "constraints": [
            {"source_name": {"some": "account_id_key"}, "data": {"Unique": {"columns": [0]}}},
            {"source_name": {"some": "account_email_key"}, "data": {"Unique": {"columns": [1]}}},
        ],
        "sequences": [
            {
                "source_name": {"some": "account_id_seq"},
                "column": 0,
                "start": {"none": []},
                "min_value": {"none": []},
                "max_value": {"none": []},
                "increment": 1,
            }
        ],
        "table_type": {"User": []},
        "table_access": {"Public": []},
        "default_values": [{"col_id": 2, "value": "07000000"}, {"col_id": 3, "value": "01"}],
        "is_event": False,
    }


def test_tables_say_what_kind_they_are(module: Module) -> None:
    kinds = {table["source_name"]: (table["is_event"], *table["table_access"]) for table in section(module, "Tables")}

    assert kinds == {
        "account": (False, "Public"),
        "ping": (True, "Public"),
        "secret": (False, "Private"),
        "reminder": (False, "Private"),
    }
    assert section(module, "Schedules") == [
        {
            "source_name": {"some": "reminder_sched"},
            "table_name": "reminder",
            "schedule_at_col": 1,
            "function_name": "send_reminder",
        }
    ]


def test_types_have_names_and_numbers(module: Module) -> None:
    types = section(module, "Types")

    assert [entry["source_name"] for entry in types] == [
        {"scope": [], "source_name": name} for name in ("Account", "Status", "Ping", "Place", "Secret", "Reminder")
    ]
    assert [entry["ty"] for entry in types] == list(range(6))
    status = section(module, "Typespace")["types"][1]
    assert status == {
        "Sum": {
            "variants": [
                {"name": {"some": "ACTIVE"}, "algebraic_type": UNIT},
                {"name": {"some": "Banned"}, "algebraic_type": UNIT},
            ]
        }
    }


def test_functions_say_who_may_call_them(module: Module) -> None:
    visible = {f["source_name"]: next(iter(f["visibility"])) for f in section(module, "Reducers")}

    assert visible == {
        "add_account": "ClientCallable",
        "send_reminder": "Private",
        "sweep": "Private",
        "init": "Private",
        "joined": "Private",
    }
    assert section(module, "Reducers")[0] == {
        "source_name": "add_account",
        "params": {
            "elements": [
                {"name": {"some": "email"}, "algebraic_type": {"String": []}},
                {"name": {"some": "status"}, "algebraic_type": {"Ref": 1}},
            ]
        },
        "visibility": {"ClientCallable": []},
        "ok_return_type": UNIT,
        "err_return_type": {"String": []},
    }
    assert [(p["source_name"], p["return_type"]) for p in section(module, "Procedures")] == [
        ("count_team", {"U64": []}),
        ("refresh", UNIT),
    ]


def test_views_have_keys_and_filters_are_kept(module: Module) -> None:
    views = section(module, "Views")

    assert [(v["source_name"], v["index"], v["is_public"]) for v in views] == [
        ("my_account", 0, True),
        ("hidden_view", 1, False),
    ]
    assert [*views[0]["return_type"]] == ["Sum"]
    assert views[1]["return_type"] == {"Array": {"Ref": 0}}
    assert section(module, "ViewPrimaryKeys")[0] == {"view_source_name": "my_account", "columns": ["id"]}
    assert section(module, "RowLevelSecurity") == [{"sql": "SELECT * FROM account WHERE team_id = 1"}]


def test_one_reducer_answers_for_each_event_even_when_modules_have_several(module: Module) -> None:
    other = Module("other")

    @other.client_connected
    def joined(ctx: ReducerContext) -> None: ...

    module.include(other)

    assert section(module, "LifeCycleReducers") == [
        {"lifecycle_spec": {"Init": []}, "function_name": "init"},
        {"lifecycle_spec": {"OnConnect": []}, "function_name": "joined"},
    ]
    assert "sample_joined" in [reducer["source_name"] for reducer in section(module, "Reducers")]


def test_what_a_module_does_not_have_is_left_out() -> None:
    sections = schema_json(Module("empty").resolve(), 10)["sections"]

    assert [next(iter(found)) for found in sections] == ["Typespace", "CaseConversionPolicy"]


def test_version_9_says_the_same_in_its_own_form(module: Module) -> None:
    old = schema_json(module.resolve(), 9)

    assert [*old] == ["typespace", "tables", "reducers", "types", "misc_exports", "row_level_security"]
    tables = {table["name"]: table for table in old["tables"]}
    assert tables["reminder"]["schedule"]["some"]["reducer_name"] == "send_reminder"
    assert tables["account"]["schedule"] == {"none": []}
    assert "is_event" not in tables["ping"]
    reducers = {reducer["name"]: reducer["lifecycle"] for reducer in old["reducers"]}
    assert reducers["init"] == {"some": {"Init": []}}
    assert reducers["add_account"] == {"none": []}
    assert [next(iter(export)) for export in old["misc_exports"]] == [
        "Procedure",
        "Procedure",
        "View",
        "View",
        "ColumnDefaultValue",
        "ColumnDefaultValue",
    ]


def test_another_version_is_refused(module: Module) -> None:
    with pytest.raises(ValueError, match="no version 8 of module definitions; ask for 9 or 10"):
        schema_json(module.resolve(), 8)
