"""What a query may say, and what is answered to the rest: the position, what is wrong, and what to write instead."""

from __future__ import annotations

import pytest

from gamedb import Identity, QueryError, Row
from gamedb.query import CONDITIONS_MAX, NESTING_MAX, TEXT_MAX, Catalog
from tests.gamedb.query.game import ANN, BOB, Asked, Everything, Item, Mark, Mode, Player, a_module


@pytest.fixture(scope="module")
def asked() -> Asked:
    asked = Asked(a_module())
    asked.add(
        Player(name="ann", owner=ANN, zone=1, hp=50, guild=7),
        Player(name='it\'s "q" \\ é\n', owner=BOB, zone=2, hp=-5, online=False, mode=Mode.BUSY, speed=1.5),
        Player(name="cat", zone=2, hp=0, speed=-2.0),
        Item(player_id=1, kind="gem"),
        Item(player_id=1, kind="gold", count=5),
        Item(player_id=2, kind="gem"),
        Mark(zone=2, text="x"),
        Everything(id=2**64 - 1),
    )
    return asked


def ids(rows: list[Row]) -> list[int]:
    return sorted(row.id for row in rows)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('SELECT * FROM "player"', [1, 2, 3]),
        ('SELECT * FROM "everything" WHERE "everything"."id" = 18446744073709551615', [2**64 - 1]),
        ('SELECT * FROM "player" WHERE "player"."hp" < -4', [2]),
        ('SELECT * FROM "player" WHERE "player"."speed" = 1.5', [2]),
        ('SELECT * FROM "player" WHERE "player"."speed" < 1e+21', [1, 2, 3]),
        ('SELECT * FROM "player" WHERE "player"."speed" > 1e-7', [2]),
        ('SELECT * FROM "player" WHERE "player"."name" = \'it\'\'s "q" \\ é\n\'', [2]),
        ('SELECT * FROM "player" WHERE "player"."online" = TRUE', [1, 3]),
        ('SELECT * FROM "player" WHERE "player"."online"', [1, 3]),
        ('SELECT * FROM "player" WHERE NOT ("player"."online" = TRUE)', [2]),
        ('SELECT * FROM "player" WHERE TRUE = TRUE', [1, 2, 3]),
        ('SELECT * FROM "player" WHERE FALSE = TRUE', []),
        (f'SELECT * FROM "player" WHERE "player"."owner" = 0x{ANN.hex()}', [1]),
        ("SELECT * FROM player WHERE owner = :sender", [1]),
        ("SELECT * FROM player WHERE :sender <> owner", [2, 3]),
        ('SELECT * FROM "player" WHERE ("player"."zone" = 2) AND ("player"."hp" >= 0)', [3]),
        ('SELECT * FROM "player" WHERE (("player"."zone" = 2) AND ("player"."hp" >= 0)) AND ("player"."id" <= 3)', [3]),
        (
            'SELECT * FROM "player" '
            'WHERE (("player"."id" = 1) OR ("player"."hp" <= -5)) AND (NOT ("player"."zone" = 2))',
            [1],
        ),
        ('SELECT * FROM "player" WHERE "player"."zone" = "player"."id"', [1, 2]),
        ("select P.* from player as P where P.zone!=2;", [1]),
        ("SELECT * FROM player p WHERE 2 = p.zone AND hp>-5", [3]),
        ("SELECT * FROM player WHERE zone = 1 OR zone = 2 AND hp = 0", [1, 3]),
        ("SELECT * FROM player WHERE (zone = 1 OR zone = 2) AND hp = 0", [3]),
        ("SELECT * FROM player WHERE NOT zone = 1 AND NOT NOT hp = 0", [3]),
        ("SELECT * FROM player WHERE id = 1 OR id = 2 OR name = 'ann'", [1, 2]),
        ("SELECT * FROM player WHERE id > 1 AND id < 3", [2]),
        ("SELECT * FROM player WHERE guild = 7", [1]),
        ("SELECT * FROM player WHERE guild <> 8", [1]),
        ("SELECT * FROM player WHERE NOT (guild = 8)", [1]),
        ("SELECT * FROM player WHERE mode = 'BUSY'", [2]),
        ('SELECT "item".* FROM "player" JOIN "item" ON "player"."id" = "item"."player_id"', [1, 2, 3]),
        ('SELECT "item".* FROM "player" JOIN "item" ON "item"."player_id" = "player"."id"', [1, 2, 3]),
        ('SELECT "player".* FROM "item" JOIN "player" ON "player"."id" = "item"."player_id"', [1, 1, 2]),
        (
            'SELECT "item".* FROM "player" JOIN "item" ON "player"."id" = "item"."player_id" '
            'WHERE ("player"."online" = TRUE) AND ("item"."count" > 3)',
            [2],
        ),
        (
            'SELECT "item".* FROM "player" JOIN "item" '
            'ON ("player"."id" = "item"."player_id") AND ("item"."count" > 3)',
            [2],
        ),
        ("SELECT i.* FROM item i INNER JOIN player p ON i.player_id = p.id WHERE p.owner = :sender", [1, 2]),
        ("SELECT p.* FROM player p JOIN mark m ON p.zone = m.zone WHERE m.text = 'x'", [2, 3]),
    ],
)
def test_what_is_understood(asked: Asked, sql: str, found: list[int]) -> None:
    assert ids(asked.ask(sql)) == found


FORM = "the form is SELECT"


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("¦", FORM),
        ("¦DELETE FROM player", "begins with SELECT"),
        ("SELECT * ¦FROM", FORM),
        ("SELECT * FROM player ¦WHERE", FORM),
        ("SELECT * FROM player WHERE ¦id", "alone is no condition"),
        ("SELECT * FROM player WHERE id ¦=", FORM),
        ("SELECT * FROM player WHERE id = ¦= 1", FORM),
        ("SELECT * FROM player WHERE id = 1 ¦2", FORM),
        ("SELECT * FROM player WHERE ¦(id = 1", "not closed"),
        ("SELECT * FROM player WHERE id = 1¦)", "closes nothing"),
        ("SELECT * FROM player WHERE ¦id = 1 = 2", "on each side"),
        ("SELECT * FROM player WHERE ¦5", "alone is no condition"),
        ("SELECT * FROM player WHERE ¦1 = 'a'", "of different kinds"),
        ("SELECT * FROM player WHERE ¦:sender = :sender", "column of type Identity"),
        ("SELECT * FROM player WHERE hp = ¦:sender", "is an Identity"),
        ("SELECT * FROM player WHERE hp = ¦:me", "only one is :sender"),
        ("SELECT ¦id FROM player", "whole rows"),
        ("¦SELECT", "select one table: * or t.*"),
        ("SELECT * FROM player JOIN ¦item", "need a JOIN with its condition"),
        ("SELECT player.* FROM player JOIN ¦item ON TRUE", "equality of a column of each table"),
        ("SELECT *, ¦id FROM player", "select one table"),
        ("SELECT ¦x.* FROM player p", "not among the tables"),
        ("SELECT ¦player.* FROM player p", "not among the tables"),
        ("SELECT * FROM player, ¦item", "need a JOIN"),
        ("SELECT * FROM (SELECT * FROM ¦player)", "name of a table"),
        ("SELECT * FROM player ¦ORDER BY id", "sort and cut the rows in the client"),
        ("SELECT * FROM player WHERE hp > 1 ¦LIMIT 5", "sort and cut the rows in the client"),
        ("SELECT ¦COUNT(*) FROM player", "no functions here"),
        ("SELECT ¦DISTINCT * FROM player", "not supported"),
        ("SELECT * FROM player WHERE id ¦IN (1, 2)", "with OR and AND"),
        ("SELECT * FROM player WHERE id ¦BETWEEN 1 AND 2", "with OR and AND"),
        ("SELECT * FROM player WHERE name ¦LIKE 'a%'", "not supported"),
        ("SELECT * FROM player WHERE guild ¦IS NULL", "in which it is present"),
        ("SELECT * FROM player ¦LEFT JOIN item ON player.id = item.player_id", "only JOIN and INNER JOIN"),
        ("SELECT * FROM player¦; SELECT * FROM item", "one query at a time"),
        ("SELECT * FROM player ¦-- all", "comments"),
        ("SELECT * FROM player WHERE id = 1 ¦+ 1", FORM),
        ("SELECT * FROM player WHERE id = ¦-hp", "before a number"),
        ("SELECT * FROM player WHERE speed = ¦-Infinity", "before a number"),
        ("SELECT * FROM player WHERE speed = ¦NaN", "no value"),
        ("SELECT * FROM player WHERE id = ¦5x", "is not a number"),
        ("SELECT * FROM player WHERE name = ¦'ann", "no closing"),
        ('SELECT * FROM ¦"player', "no closing"),
        ('SELECT * FROM player WHERE name = ¦"ann"', "single quotes"),
        ("SELECT * FROM player WHERE ¦`id` = 1", "unexpected"),
        ("SELECT * FROM ¦Player", "no such table: `Player`. If the table exists, it may be marked private."),
        ('SELECT * FROM ¦"lib"."item"', "no such table: `lib.item`"),
        ("SELECT * FROM ¦secret", "no such table: `secret`. If the table exists, it may be marked private."),
        ("SELECT p.* FROM player p JOIN ¦secret s ON p.id = s.id", "no such table: `secret`"),
        ("SELECT * FROM ¦hidden", "no such table"),
        ("SELECT * FROM player WHERE ¦item.id = 1", "not among the tables"),
        ("SELECT * FROM player WHERE ¦mana = 1", "no such column: `mana`"),
        ("SELECT * FROM player p WHERE ¦p.mana = 1", "there are id, name"),
        ("SELECT p.* FROM player p JOIN item i ON p.id = i.player_id WHERE ¦id = 1", "in both tables"),
        ("SELECT ¦* FROM player p JOIN item i ON p.id = i.player_id", "say whose rows"),
        ("SELECT a.* FROM player a JOIN ¦player b ON a.id = b.id", "cannot be joined with itself"),
        ("SELECT player.* FROM player JOIN ¦player ON id = id", "cannot be joined with itself"),
        (
            "SELECT m.* FROM ¦item i JOIN mark m ON i.count = m.zone",
            "an index on both columns; declare item.count as Index[...]",
        ),
        ("SELECT p.* FROM player p JOIN ¦item i ON p.hp = i.count", "differ in type"),
        ("SELECT p.* FROM player p JOIN ¦mark m ON p.id = m.zone", "differ in type"),
        ("SELECT p.* FROM player p JOIN ¦item i ON p.id > i.player_id", "equality of a column of each table"),
        ("SELECT p.* FROM player p JOIN ¦item i ON p.id = 1", "equality of a column of each table"),
        ("SELECT p.* FROM player p JOIN ¦hit h ON p.id = h.player_id", "is an event table"),
        ("SELECT p.* FROM player p JOIN ¦mine m ON p.id = m.id", "views cannot be joined"),
        (
            "SELECT p.* FROM player p JOIN item i ON p.id = i.player_id JOIN ¦mark m ON m.zone = p.zone",
            "at most two tables",
        ),
        ("SELECT * FROM ¦in_zone", "takes arguments (zone: u32)"),
        ("SELECT * FROM player WHERE hp = ¦name", "differ in type"),
        ("SELECT * FROM player WHERE ¦mode < 'BUSY'", "has no order"),
        ("SELECT * FROM everything WHERE ¦many = 1", "cannot be compared"),
        ("SELECT * FROM everything WHERE ¦point = 1", "cannot be compared"),
    ],
)
def test_what_is_refused_and_where(asked: Asked, marked: str, text: str) -> None:
    with pytest.raises(QueryError) as caught:
        asked.catalog.parse(marked.replace("¦", ""))
    assert text in str(caught.value)
    assert caught.value.position == marked.index("¦")


def test_private_system_and_unknown_tables_answer_alike(asked: Asked) -> None:
    """L28: what is said about a table that a client may not see tells nothing about it."""
    texts = set()
    for name in ("secret", "hidden", "gamedb_client", "nowhere"):
        for rest in ("", " WHERE id = 1", " WHERE nonsense = 'x'", " x JOIN player p ON p.id = x.id"):
            select = "*" if "JOIN" not in rest else "x.*"
            with pytest.raises(QueryError) as caught:
                asked.catalog.parse(f"SELECT {select} FROM {name}{rest}")
            texts.add(str(caught.value).replace(name, "x"))
    assert texts == {"no such table: `x`. If the table exists, it may be marked private."}


def test_an_operator_may_ask_for_private_tables(asked: Asked) -> None:
    assert asked.ask("SELECT * FROM secret", operator=True) == []
    assert ids(asked.ask("SELECT * FROM hidden", operator=True)) == [1, 2, 3]
    with pytest.raises(QueryError, match="no such table: `gamedb_client`"):
        asked.ask("SELECT * FROM gamedb_client", operator=True)


def test_everything_is_every_table_but_events_and_views(asked: Asked) -> None:
    names = [query.name for query in asked.catalog.parse_all("select * from * ;")]
    assert names == ["player", "item", "mark", "everything"]
    names = [query.name for query in asked.catalog.parse_all("SELECT * FROM *", operator=True)]
    assert names == ["player", "item", "mark", "everything", "secret"]
    assert [q.name for q in asked.catalog.parse_all("SELECT * FROM mark")] == ["mark"]
    with pytest.raises(QueryError, match="many tables"):
        asked.catalog.parse("SELECT * FROM *")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT * FROM player", 'select p.* from "player" as p ;'),
        ("SELECT * FROM player WHERE zone = 1 AND hp = 2", "SELECT * FROM player WHERE (hp = 2) AND (1 = zone)"),
        (
            "SELECT * FROM player WHERE zone = 1 OR hp = 2 OR id = 3",
            "SELECT * FROM player WHERE id=3 OR (hp=2 OR zone=1)",
        ),
        ("SELECT * FROM player WHERE zone = 1", "SELECT * FROM player WHERE NOT zone <> 1 AND TRUE = TRUE"),
        ("SELECT * FROM player WHERE zone > 1", "SELECT * FROM player WHERE zone > 1 AND (1 < zone)"),
        ("SELECT * FROM player WHERE speed = 100", "SELECT * FROM player WHERE speed = 1e2"),
        ("SELECT * FROM player WHERE zone < hp", "SELECT * FROM player WHERE hp > zone"),
        (
            "SELECT i.* FROM item i JOIN player p ON i.player_id = p.id WHERE p.hp > 5 AND i.count = 1",
            "SELECT item.* FROM player JOIN item ON (player.id = item.player_id) AND (item.count = 1) "
            "WHERE player.hp > 5",
        ),
    ],
)
def test_queries_that_mean_the_same_are_equal(asked: Asked, one: str, other: str) -> None:
    first, second = asked.catalog.parse(one), asked.catalog.parse(other)
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT * FROM player WHERE TRUE", "SELECT * FROM player WHERE FALSE"),
        ("SELECT * FROM player WHERE online = TRUE", "SELECT * FROM player WHERE online = FALSE"),
        ("SELECT * FROM player WHERE owner = :sender", f"SELECT * FROM player WHERE owner = 0x{ANN.hex()}"),
        ("SELECT * FROM player WHERE zone = 1", "SELECT * FROM player WHERE zone = 2"),
        ("SELECT * FROM player WHERE name = 'zone'", 'SELECT * FROM player WHERE name = "name"'),
        ("SELECT * FROM player WHERE hp < 5", "SELECT * FROM player WHERE hp <= 5"),
    ],
)
def test_queries_that_look_alike_are_told_apart(asked: Asked, one: str, other: str) -> None:
    for _ in range(2):  # the second time from what was kept of the first
        first, second = asked.catalog.parse(one), asked.catalog.parse(other)
        assert first != second


def test_positions_are_right_for_a_shape_that_is_known(asked: Asked) -> None:
    asked.catalog.parse("SELECT * FROM player WHERE zone = 1")
    with pytest.raises(QueryError) as caught:
        asked.catalog.parse("select  *  from  player  where  zone  =  -1")
    assert caught.value.position == 41
    assert "player.zone: -1 is out of range for u32" in str(caught.value)


def test_long_chains_of_a_builder_are_flat(asked: Asked) -> None:
    sql = "(id = 1)"
    for n in range(300):
        sql = f"({sql} OR (id = {n}))"
    assert ids(asked.ask(f"SELECT * FROM player WHERE {sql} AND ((((zone = 2))))")) == [2, 3]


def test_limits_have_names_and_clear_errors(asked: Asked) -> None:
    parse = asked.catalog.parse
    head = "SELECT * FROM player WHERE "
    with pytest.raises(QueryError, match=f"at most {TEXT_MAX}"):
        parse(head + "x" * TEXT_MAX)
    with pytest.raises(QueryError, match=f"deeper than {NESTING_MAX}"):
        parse(head + "NOT " * (NESTING_MAX + 1) + "online")
    nested = "id = 1"
    for n in range(NESTING_MAX + 2):
        nested = f"{'NOT' if n % 2 else 'id = 1 AND'} ({nested} OR id = 2)"
    with pytest.raises(QueryError, match=f"deeper than {NESTING_MAX}"):
        parse(head + nested)
    parse(head + " OR ".join(["id = 1"] * CONDITIONS_MAX))
    with pytest.raises(QueryError, match=f"more than {CONDITIONS_MAX} comparisons"):
        parse(head + " OR ".join(["id = 1"] * (CONDITIONS_MAX + 1)))
    with pytest.raises(QueryError, match="symbols; at most"):
        parse(head + "(" * 20_000)


def test_the_deepest_query_that_is_allowed_is_understood_far_down_the_stack(asked: Asked) -> None:
    nested = "id = 1"
    for n in range(NESTING_MAX - 1):
        nested = f"hp = 1 {'AND' if n % 2 else 'OR'} ({nested})"

    def deep(level: int) -> None:
        if level:
            deep(level - 1)
        else:
            asked.catalog.parse(f"SELECT * FROM player WHERE {nested}")

    deep(150)


def test_the_shapes_that_are_kept_are_bounded(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamedb.query.catalog.SHAPES_MAX", 5)
    catalog = Catalog(asked.db.module)
    for n in range(20):
        assert catalog.parse(f"SELECT * FROM player p{n}") == catalog.parse("SELECT * FROM player")
    assert len(catalog._shapes) == 5


def test_a_query_is_a_text(asked: Asked) -> None:
    with pytest.raises(QueryError, match="a query is a text"):
        asked.catalog.parse(b"SELECT * FROM player")  # type: ignore[arg-type]


def test_an_unknown_table_close_to_one_that_may_be_seen_is_hinted_at(asked: Asked) -> None:
    with pytest.raises(QueryError, match="Did you mean `player`"):
        asked.catalog.parse("SELECT * FROM players")


def test_sender_is_bound_for_each_who_asks(asked: Asked) -> None:
    query = asked.catalog.parse("SELECT * FROM player WHERE owner = :sender")
    assert query.depends_on_sender
    assert ids(asked.matcher.answer(query, BOB)) == [2]
    assert ids(asked.matcher.answer(query, Identity.from_int(77))) == []
