from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.services.snapshot.predicate.data_type import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LOCAL_TIMESTAMP,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
)
from gateway.services.snapshot.predicate.expression import (
    NULL,
    UNKNOWN,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    ParseFault,
    Prefix,
)
from gateway.services.snapshot.predicate.sql import parse_sql
from tests.cases import each_case
from tests.growth import grows_linearly

A, B = Column(path=("a",)), Column(path=("b",))


def number(text: str) -> Literal:
    return Literal(text=text, type=LONG)


def text(value: str, *casts: DataType) -> Literal:
    return Literal(text=value, type=STRING, casts=casts)


def compared(operator: str, literal: Literal, column: Column = A) -> Comparison:
    return Comparison(operator=Operator(operator), column=column, literal=literal)


EQ1, EQ2 = compared("=", number("1")), compared("=", number("2"), B)


@each_case("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_a_column_is_compared_with_a_constant(operator):
    assert parse_sql(f"a {operator} 123") == compared(operator, number("123"))


@each_case(
    ("sql", "operator"),
    [("1 < a", ">"), ("1 <= a", ">="), ("1 > a", "<"), ("1 >= a", "<="), ("1 = a", "="), ("1 <> a", "<>")],
)
def test_a_constant_on_the_left_turns_the_operator(sql, operator):
    assert parse_sql(sql) == compared(operator, number("1"))


@each_case(
    ("sql", "literal"),
    [
        ("5L", number("5")),
        ("5S", number("5")),
        ("5Y", number("5")),
        ("-5", number("-5")),
        ("- 5L", number("-5")),
        ("+5", number("5")),
        ("1.5", Literal(text="1.5", type=DOUBLE)),
        ("1.50BD", Literal(text="1.50", type=DOUBLE)),
        ("-1.0D", Literal(text="-1.0", type=DOUBLE)),
        ("1E3", Literal(text="1E3", type=DOUBLE)),
        ("1.5F", Literal(text="1.5", type=FLOAT)),
        ("CAST(1.5 AS FLOAT)", Literal(text="1.5", type=DOUBLE, casts=(FLOAT,))),
        ("'x'", text("x")),
        ('"x"', text("x")),
        (r"'it\'s'", text("it's")),
        ("'it''s'", text("it's")),
        (r"'a\\b'", text(r"a\b")),
        ("DATE '2021-01-01'", text("2021-01-01", DATE)),
        ("CAST('2021-04-28' AS DATE)", text("2021-04-28", DATE)),
        ("TIMESTAMP '2021-01-01 00:00:00'", text("2021-01-01 00:00:00", TIMESTAMP)),
        ("TIMESTAMP('2021-01-01 00:00:00.0')", text("2021-01-01 00:00:00.0", TIMESTAMP)),
        ("TIMESTAMP_NTZ '2021-01-01 00:00:00'", text("2021-01-01 00:00:00", LOCAL_TIMESTAMP)),
        ("CAST('1.5' AS DECIMAL(10, 2))", text("1.5", DataType("decimal", 10, 2))),
        ("true", Literal(text="true", type=BOOLEAN)),
    ],
)
def test_constants_are_read_as_spark_writes_them(sql, literal):
    assert parse_sql(f"(a = {sql})") == compared("=", literal)


@each_case(
    ("sql", "path", "casts"),
    [
        ("a.b", ("a", "b"), ()),
        ("`a.b`", ("a.b",), ()),
        ("`a``b`.`c d`", ("a`b", "c d"), ()),
        ("CAST(partitionValues.`p` AS INT)", ("partitionValues", "p"), (DataType("integer"),)),
        ("CAST(CAST(a AS INT) AS BIGINT)", ("a",), (DataType("integer"), LONG)),
        ("date", ("date",), ()),
        ("größe", ("größe",), ()),
        # Spark quotes for the sake of characters, not of words.
        ("end", ("end",), ()),
        ("t.FROM", ("t", "FROM"), ()),
        ("case", ("case",), ()),
        ("interval", ("interval",), ()),
        ("2024_sales", ("2024_sales",), ()),
        ("1e", ("1e",), ()),
        ("s.1Lx", ("s", "1Lx"), ()),
    ],
)
def test_columns_are_named_in_parts_and_may_be_cast(sql, path, casts):
    assert parse_sql(f"({sql} = 1)") == compared("=", number("1"), Column(path=path, casts=casts))


@each_case(
    ("sql", "expression"),
    [
        ("a IS NULL", IsNull(column=A)),
        ("isnull(a)", IsNull(column=A)),
        ("(a IS NOT NULL)", Not(child=IsNull(column=A))),
        ("isnotnull(a)", Not(child=IsNull(column=A))),
        ("(a IN (1, 2))", In(column=A, literals=(number("1"), number("2")))),
        ("a NOT IN (1)", Not(child=In(column=A, literals=(number("1"),)))),
        ("a IN (1, NULL)", Or(children=(In(column=A, literals=(number("1"),)), NULL))),
        ("a BETWEEN 1 AND 5", And(children=(compared(">=", number("1")), compared("<=", number("5"))))),
        ("a NOT BETWEEN 1 AND 5", Not(child=parse_sql("a BETWEEN 1 AND 5"))),
        ("(a <=> 1)", And(children=(Not(child=IsNull(column=A)), EQ1))),
        ("(a <=> NULL)", IsNull(column=A)),
        ("a IS TRUE", parse_sql("(a <=> true)")),
        ("a IS NOT FALSE", Not(child=parse_sql("(a <=> false)"))),
        ("a IS UNKNOWN", IsNull(column=A)),
        ("a IS DISTINCT FROM 1", Not(child=And(children=(Not(child=IsNull(column=A)), EQ1)))),
        ("STARTSWITH(a, 'x')", Prefix(column=A, prefix="x")),
        ("a LIKE 'x%'", And(children=(Prefix(column=A, prefix="x"), UNKNOWN))),
        ("a LIKE 'x_y%'", And(children=(Prefix(column=A, prefix="x"), UNKNOWN))),
        (r"a LIKE 'x\\%y'", And(children=(Prefix(column=A, prefix="x"), UNKNOWN))),
        ("a LIKE 'x/%y' ESCAPE '/'", And(children=(Prefix(column=A, prefix="x"), UNKNOWN))),
        ("a LIKE 'x'", And(children=(compared("=", text("x")), UNKNOWN))),
        ("a NOT RLIKE 'x'", Not(child=UNKNOWN)),
        ("a NOT LIKE 'x%'", Not(child=parse_sql("a LIKE 'x%'"))),
        ("a", compared("=", Literal(text="true", type=BOOLEAN))),
        ("(NOT a)", Not(child=compared("=", Literal(text="true", type=BOOLEAN)))),
        ("true", Constant(value=True)),
        ("NULL", NULL),
        ("a = NULL", NULL),
        ("CAST(NULL AS INT) = a", NULL),
    ],
)
def test_tests_are_read(sql, expression):
    assert parse_sql(sql) == expression


@each_case(
    ("sql", "expression"),
    [
        ("a = 1 AND b = 2", And(children=(EQ1, EQ2))),
        ("((a = 1) OR (b = 2))", Or(children=(EQ1, EQ2))),
        ("a = 1 OR b = 2 AND b = 2", Or(children=(EQ1, And(children=(EQ2, EQ2))))),
        ("NOT a = 1 AND b = 2", And(children=(Not(child=EQ1), EQ2))),
        ("! a = 1 or b = 2", Or(children=(Not(child=EQ1), EQ2))),
        (
            "a BETWEEN 1 AND 2 AND b = 2",
            And(children=(compared(">=", number("1")), compared("<=", number("2")), EQ2)),
        ),
        ("(NOT (a = 1))", Not(child=EQ1)),
    ],
)
def test_operators_bind_as_in_sql(sql, expression):
    assert parse_sql(sql) == expression


@each_case(
    "part",
    [
        "f(a) > 1",
        "a + 1 = 2",
        "a = b",
        "a % 2 = 0",
        "(a = 1) = true",
        "m['k'] = 1",
        "a = X'00'",
        r"a = 'x\n'",
        "m['k'].x[0].y = 1",
        "a IN ()",
        "(a = 1) IS TRUE",
        "a RLIKE 'x'",
        "RLIKE(a, 'x')",
        "a REGEXP 'x'",
        "a ILIKE 'x%' ESCAPE '/'",
        "CASE WHEN a = 1 THEN true WHEN (a = 2) THEN NULL ELSE false END",
        "CASE a WHEN 1 THEN 2 END = 2",
        "if(a, 1, 2) = 1",
        "exists(a)",
        "CAST(a AS INTERVAL) = 1",
        "a IN (1, b)",
        "-a = 1",
        "contains(a, 'x')",
        "CAST(CAST(CAST(CAST(CAST(a AS INT) AS INT) AS INT) AS INT) AS INT) = 1",
        "a LIKE b",
    ],
)
def test_a_part_that_is_not_known_does_not_lose_the_others(part):
    found = parse_sql(f"({part}) AND b = 2")

    assert found == And(children=(UNKNOWN, EQ2))


@each_case(
    "sql",
    [
        "",
        " ",
        "a =",
        "= 1",
        "(a = 1",
        "a = 1)",
        "a = 1 b",
        "a = 'x",
        "a BETWEEN 1",
        "SELECT 1",
        "a IN 1",
        "a IN (SELECT 1)",
        "a = INTERVAL '1' DAY",
        "CASE WHEN a THEN b",
        "CASE WHEN a END",
        "a RLIKE",
        "a = 1;",
    ],
)
def test_what_is_not_a_predicate_is_a_fault(sql):
    with pytest.raises(ParseFault):
        parse_sql(sql)


@each_case(
    "sql",
    [
        "(" * 100_000,
        "NOT " * 50_000 + "a",
        "-" * 50_000,
        "a = 1 AND " * 5_000 + "a = 1",
        "a" * 300_000,
        "x(" * 9_999,
        "a " + "NOT " * 20_000 + "IN (1)",
        "CASE WHEN " * 5_000,
        "a[" * 5_000,
        "t." * 20_000 + "a = 1",
    ],
)
def test_depth_and_size_are_limited(sql):
    with pytest.raises(ParseFault):
        parse_sql(sql)


@pytest.mark.slow
def test_long_runs_of_one_token_are_read_in_linear_time():
    runs = ["1", ".", "1.", ".1", "1e1", "1a", "1 ", "a[0].", "'", '"', "`", "-", "(", " ", "a", "'\\", "'a"]
    for run, end in itertools.product(runs, ["", "x", ";", "\\"]):

        def parse(length: int, run: str = run, end: str = end) -> None:
            with contextlib.suppress(ParseFault):
                parse_sql((run * length)[:length] + end)

        assert grows_linearly(parse, 200_000), run + end


@each_case("sql", ["1.x", "1.5x", "1.e", "1e+", "1.5Lx", ".5_"])
def test_a_number_ends_where_its_word_does(sql):
    with pytest.raises(ParseFault):
        parse_sql(f"a = {sql}")


def test_a_test_may_be_negated_again():
    assert parse_sql("a NOT NOT IN (1)") == Not(child=parse_sql("a NOT IN (1)"))


def test_a_long_chain_is_not_deep():
    found = parse_sql("(" * 80 + "a = 1" + " OR a = 1)" * 80)

    assert found == Or(children=(EQ1,) * 81)


def test_a_long_list_is_read():
    found = parse_sql(f"a IN ({', '.join(map(str, range(10_000)))})")

    assert isinstance(found, In)
    assert len(found.literals) == 10_000


_WORDS = st.sampled_from(
    [
        "a",
        "b",
        "`c`",
        "a.b",
        "(",
        ")",
        ",",
        "=",
        "<",
        "<=>",
        "<>",
        "+",
        "-",
        "*",
        "1",
        "1.5",
        "5L",
        "'x'",
        "DATE",
        "TIMESTAMP",
        "CAST",
        "AS",
        "INT",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "startswith",
        "true",
        "[",
        "]",
        ".",
        "!",
        "||",
        "X",
        "DISTINCT",
        "FROM",
        "CASE",
        "WHEN",
        "THEN",
        "END",
        "RLIKE",
        "2a",
    ]
)


@given(st.text() | st.lists(_WORDS, max_size=30).map(" ".join))
@example("a = '\\")
@example("`")
@example("\x00")
@example("'" * 9_999)
def test_any_text_is_a_predicate_or_a_fault(sql):
    with contextlib.suppress(ParseFault):
        parse_sql(sql)
