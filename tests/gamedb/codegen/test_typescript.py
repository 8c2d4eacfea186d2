"""Bindings for the TypeScript SDK, as text. That the SDK takes them is shown by the tests in client_ts."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from gamedb import Module, PrimaryKey, ReducerContext, Row, SchemaError, Struct, Unique, u32, u64
from gamedb.codegen.files import MARK, Generation
from gamedb.codegen.names import camel, pascal
from gamedb.codegen.typescript import typescript


def body(text: str) -> str:
    """A file without its header and its imports."""
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("//", "/* ", "import"))).strip()


def test_one_file_for_each_thing_that_clients_may_use(module: Module) -> None:
    files = typescript(module.resolve())

    assert sorted(files) == [
        "account_table.ts",
        "add_account_reducer.ts",
        "count_team_procedure.ts",
        "index.ts",
        "my_account_table.ts",
        "ping_table.ts",
        "refresh_procedure.ts",
        "types.ts",
        "types/procedures.ts",
        "types/reducers.ts",
    ]
    assert all(MARK in text.splitlines()[0] for text in files.values())


def test_private_things_come_only_when_asked_for_and_lifecycle_reducers_never(module: Module) -> None:
    files = typescript(module.resolve(), include_private=True)

    assert {"secret_table.ts", "reminder_table.ts", "sweep_reducer.ts", "hidden_view_table.ts"} <= files.keys()
    assert not {"init_reducer.ts", "joined_reducer.ts"} & files.keys()


def test_it_is_always_the_same(module: Module) -> None:
    assert typescript(module.resolve()) == typescript(module.resolve())


def test_a_table_has_its_columns_in_wire_order_with_keys_and_database_names(module: Module) -> None:
    files = typescript(module.resolve())

    assert body(files["account_table.ts"]) == (
        "export default __t.row({\n"
        "  id: __t.u64().primaryKey(),\n"
        "  email: __t.string().unique(),\n"
        "  teamId: __t.u32().index().name('team_id'),\n"
        "  nickname: __t.option(__t.string()),\n"
        "  get status() {\n"
        "    return Status;\n"
        "  },\n"
        "});"
    )
    assert "import { Status } from './types';" in files["account_table.ts"]


def test_a_view_has_the_key_of_its_rows_alone(module: Module) -> None:
    text = typescript(module.resolve())["my_account_table.ts"]

    assert "id: __t.u64().primaryKey()," in text
    assert "email: __t.string()," in text


def test_functions_are_objects_of_builders(module: Module) -> None:
    files = typescript(module.resolve())

    assert body(files["add_account_reducer.ts"]) == (
        "export default {\n  email: __t.string(),\n  get status() {\n    return Status;\n  },\n};"
    )
    assert body(files["count_team_procedure.ts"]) == (
        "export const params = {\n  team: __t.u32(),\n};\nexport const returnType = __t.u64();"
    )
    assert "export const returnType = __t.unit();" in files["refresh_procedure.ts"]
    assert "export type AddAccountParams = __Infer<typeof AddAccountReducer>;" in files["types/reducers.ts"]
    assert (
        "export type CountTeamResult = __Infer<typeof CountTeamProcedure.returnType>;" in files["types/procedures.ts"]
    )


def test_types_have_pascal_case_variants_and_camel_case_fields(module: Module) -> None:
    text = typescript(module.resolve())["types.ts"]

    assert (
        "export const Status = __t.enum('Status', {\n  Active: __t.unit(),\n  Banned: __t.unit(),\n});\n"
        "export type Status = __Infer<typeof Status>;\n"
    ) in text
    assert "export const Place = __t.object('Place', {\n  xPos: __t.u32(),\n});" in text


def test_the_index_names_tables_indexes_constraints_and_functions(module: Module) -> None:
    text = typescript(module.resolve())["index.ts"]

    assert (
        "  account: __table({\n"
        "    name: 'account',\n"
        "    indexes: [\n"
        "      { accessor: 'email', name: 'account_email_idx_btree', algorithm: 'btree', columns: ['email'] },\n"
        "      { accessor: 'id', name: 'account_id_idx_btree', algorithm: 'btree', columns: ['id'] },\n"
        "      { accessor: 'team_id', name: 'account_team_id_idx_btree', algorithm: 'btree', columns: ['teamId'] },\n"
        "      { accessor: 'by_team_id_status', name: 'account_team_id_status_idx_btree', algorithm: 'btree', "
        "columns: ['teamId', 'status'] },\n"
        "    ],\n"
        "    constraints: [\n"
        "      { name: 'account_email_key', constraint: 'unique', columns: ['email'] },\n"
        "      { name: 'account_id_key', constraint: 'unique', columns: ['id'] },\n"
        "    ],\n"
        "  }, AccountRow),\n"
    ) in text
    assert "    event: true,\n  }, PingRow)," in text
    assert (
        "myAccount: __table({\n    name: 'my_account',\n    indexes: [],\n    constraints: [],\n  }, MyAccountRow)"
        in text
    )
    assert "__reducerSchema('add_account', AddAccountReducer)," in text
    assert "__procedureSchema('count_team', CountTeamProcedure.params, CountTeamProcedure.returnType)," in text
    assert "cliVersion: '2.10.1' as const" in text


def test_a_module_of_nothing_is_written() -> None:
    files = typescript(Module("empty").resolve())

    assert sorted(files) == ["index.ts", "types.ts", "types/procedures.ts", "types/reducers.ts"]
    assert "__reducers()" in files["index.ts"]


@pytest.mark.parametrize(
    ("name", "written"),
    [("team_id", "teamId"), ("id", "id"), ("player_1", "player1"), ("n_u8", "nU8"), ("HP", "hP"), ("a__b", "aB")],
)
def test_camel_case_is_that_of_the_sdk(name: str, written: str) -> None:
    assert camel(name) == written


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("DamageEvent", "DamageEvent"),
        ("team_id", "TeamId"),
        ("NORTH_EAST", "NorthEast"),
        ("ERROR", "Error"),
        ("HTTPServer", "HTTPServer"),
        ("my-tag", "MyTag"),
        ("X", "X"),
    ],
)
def test_pascal_case(name: str, written: str) -> None:
    assert pascal(name) == written


def row(name: str, **columns: Any) -> type[Row]:
    return type(Row)(name, (Row,), {"__annotations__": columns, "__module__": __name__})


def test_columns_that_would_be_one_are_refused() -> None:
    module = Module("sample")
    module.table(public=True)(row("Item", max_hp=u32, maxHp=u32))

    with pytest.raises(SchemaError, match="table 'item': 'max_hp' and 'maxHp' would both be written 'maxHp'"):
        typescript(module.resolve())


def test_tables_that_would_be_one_are_refused() -> None:
    module = Module("sample")
    module.table(public=True, name="big_item")(row("A", n=u32))
    module.table(public=True, name="big__item")(row("B", n=u32))

    with pytest.raises(SchemaError, match=r"tables and views: .* would both be written 'bigItem'"):
        typescript(module.resolve())


def test_reducers_that_would_be_one_are_refused() -> None:
    module = Module("sample")

    @module.reducer
    def go_on(ctx: ReducerContext) -> None: ...

    @module.reducer
    def goOn(ctx: ReducerContext) -> None: ...

    with pytest.raises(SchemaError, match="reducers: 'goOn' and 'go_on' would both be written 'goOn'"):
        typescript(module.resolve())


def test_a_name_that_the_types_of_the_sdk_get_wrong_is_refused() -> None:
    module = Module("sample")

    @module.reducer
    def import_(ctx: ReducerContext) -> None: ...

    with pytest.raises(SchemaError, match=r"reducer 'import_': .* types for 'import'; register it as @module\.reducer"):
        typescript(module.resolve())


def test_variants_that_cannot_be_names_are_refused() -> None:
    module = Module("sample")
    module.table(public=True)(row("Item", kind=enum.Enum("Kind", {"1st": 1, "second": 2})))

    with pytest.raises(SchemaError, match="type Kind: '1st' would be written '1st', which is no name there"):
        typescript(module.resolve())


def test_a_key_that_would_hide_a_method_of_the_client_is_refused() -> None:
    module = Module("sample")
    module.table(public=True)(row("Item", count=PrimaryKey[u64]))

    with pytest.raises(SchemaError, match="look rows up by the unique column 'count'"):
        typescript(module.resolve())


def test_keys_of_types_whose_builders_know_no_keys_are_keys_all_the_same() -> None:
    module = Module("sample")
    module.table(public=True)(row("Item", key=PrimaryKey[bytes], tag=Unique[str | None]))

    text = typescript(module.resolve())["item_table.ts"]

    assert "key: new __ColumnBuilder(__t.byteArray(), { isPrimaryKey: true } as const)," in text
    assert "tag: new __OptionColumnBuilder(__t.option(__t.string()), { isUnique: true } as const)," in text


class Tree(Struct):
    children: list[Tree]


def test_a_type_inside_itself_has_its_type_written_down() -> None:
    module = Module("sample")
    module.table(public=True)(row("Item", tree=Tree))

    text = typescript(module.resolve())["types.ts"]

    assert "export type Tree = {\n  children: (Tree)[];\n};\n" in text
    assert "export const Tree: __TypeBuilder<Tree, __AlgebraicTypeType> = __t.object('Tree', {" in text


def test_libraries_add_files_of_their_own(module: Module) -> None:
    def add(generation: Generation) -> None:
        assert generation.language == "typescript"
        generation.add("extra.ts", f"export const tables = {len(generation.module.tables)};\n")

    module.on_generate(add)

    files = typescript(module.resolve())

    assert files["extra.ts"].splitlines()[1:] == ["export const tables = 4;"]
    assert MARK in files["extra.ts"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x.ts", "a\\b.ts"])
def test_libraries_stay_in_the_directory(module: Module, path: str) -> None:
    generation = Generation(module.resolve(), "typescript")

    with pytest.raises(SchemaError, match="below the output directory"):
        generation.add(path, "")


def test_libraries_do_not_write_over_each_other(module: Module) -> None:
    module.on_generate(lambda generation: generation.add("Index.ts", ""))

    with pytest.raises(SchemaError, match=r"would be written to index\.ts; rename one"):
        typescript(module.resolve())
