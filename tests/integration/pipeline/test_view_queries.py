"""What is written for Spark, by Spark's own parser: it finds the structure that was checked, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.config.views.functions import ALLOWED
from tests.components import SPARK_PIPELINE
from tests.fakes.view_config import compile_sql
from tests.unit.config.views.test_grammar import GOOD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.component(SPARK_PIPELINE)

# Texts that would be more than text to a careless reader.
TEXTS = (
    "it's",
    'say "so"',
    "${spark.app.name}",
    "${env:HOME}",
    "-- ; drop table x",
    "/* x */",
    "/*+ broadcast(t) */",
    "\\",
    "\\\\'",
    "\\u0027",
    "%_\\%\\_",
    "\n\r\t\0\x1a",
    "ä🎉\u2028\ufeff",
    "`x`",
    ":property_0",
    "'; select 1; '",
)
# Written as they were: whatever else the parser makes of a query, both say the same.
SAME = (
    "select 'a' 'b' \"c\" as x from s.d.t",
    "select a from s.d.t where a like 'x\\\\_%' or a like 'y\\_%'",
    "select a from s.d.t union select a from s.d.u intersect select a from s.d.v except select a from s.d.t",
    "select not a in (1, 2) and b > 2 or c > 2 as x, - -a as y, a - -1 as z, a - (b - c) as w from s.d.t",
    "select a / b * c as x, a % b as y, a div b as z, a <=> b as v, a is distinct from b as w from s.d.t",
    "select 1e3 as a, .5 as b, 1. as c, 10 as d, -7 as e, 1L as f, 2S as g, 1.5D as h from s.d.t",
    "select interval 1 year 2 months as a, interval '3' day as b, d + interval 4 hours as c from s.d.t",
    "select a from s.d.t order by a desc nulls last, b asc nulls first limit 3 offset 1",
    "select first(a, true) as f from s.d.t",
    "select lag(a, 1) ignore nulls over (order by b) as l from s.d.t",
    "select date '2024-02-29' as d, timestamp '2024-02-29 01:02:03.456' as t from s.d.t",
    "select cast(null as struct<x: int, y: array<string>>) as s, try_cast(a as double) as d from s.d.t",
    "select case a when 1 then 'x' end as s, case when a = 2 then b else c end as t from s.d.t",
    "select date_format(d, 'yyyy-MM-dd HH:mm') as x, substring(a, 1, 2) as y, trim(a) as z from s.d.t",
)


def parsed(spark: SparkSession, sql: str) -> Any:
    session: Any = spark._jsparkSession  # noqa: SLF001 -- PySpark does not expose the parser
    return session.sessionState().sqlParser().parsePlan(sql)


def names_in(spark: SparkSession, sql: str) -> tuple[set[str], set[str]]:
    """Return the relations and the functions that Spark's parser finds, wherever they stand."""
    relations, functions = set(), set()

    def visit(node: Any) -> None:
        kind = node.getClass().getSimpleName()
        if kind == "UnresolvedRelation":
            relations.add(str(node.multipartIdentifier().mkString(".")))
        if kind == "UnresolvedFunction":
            functions.add(str(node.nameParts().mkString(".")).lower())
        for children in (node.children(), node.innerChildren()):
            _each(children, visit)
        if hasattr(node, "expressions") and "logical" in node.getClass().getName():
            _each(node.expressions(), visit)
        if kind in {"ScalarSubquery", "Exists", "ListQuery"}:
            visit(node.plan())

    visit(parsed(spark, sql))
    return relations, functions


def _each(values, visit):
    iterator = values.iterator()
    while iterator.hasNext():
        value = iterator.next()
        if hasattr(value, "children"):
            visit(value)


@pytest.mark.parametrize("sql", [*GOOD, *SAME])
def test_spark_finds_the_sources_and_allowed_functions_and_nothing_else(spark, sql):
    view = compile_sql(sql)

    relations, functions = names_in(spark, view.query)

    # Common table expressions are relations to the parser.
    assert {name for name in relations if not name.startswith("query_")} == {
        f"source_{number}" for number in range(len(view.sources))
    }
    assert functions <= ALLOWED | {"extract"}


def test_every_text_of_a_literal_is_that_text_to_spark(spark):
    columns = ", ".join(f"'{_quoted(text)}' as c{number}" for number, text in enumerate(TEXTS))
    view = compile_sql(f"select {columns} from s.d.t")

    row = spark.sql(view.query.replace("`source_0`", "VALUES (1)")).first()

    assert tuple(row) == TEXTS


@pytest.mark.parametrize("sql", SAME)
def test_spark_reads_what_is_written_as_it_reads_what_was_given(spark, sql):
    """Compare results over small tables: sqlglot's reading of a query is Spark's own."""
    types = "a int, b int, c int, d timestamp"
    for number, name in enumerate(("t", "u", "v")):
        rows = "(1, 2, 3, timestamp '2024-01-01 00:00:00'), (2, 5, 1, null)"
        frame = spark.sql(f"select * from values {rows} as x(a, b, c, d)")
        assert frame.columns == [part.split()[0] for part in types.split(", ")]
        frame.createOrReplaceTempView(f"source_{number}")
        frame.createOrReplaceTempView(name)
    view = compile_sql(sql)
    names = {f"source_{number}": key[2] for number, key in enumerate(view.sources)}

    given = sql
    for key in view.sources:
        given = given.replace(".".join(key), key[2])
    written = view.query
    for source, name in names.items():
        written = written.replace(f"`{source}`", f"`{name}`")

    assert _outcome(spark, written) == _outcome(spark, given)


def _outcome(spark: SparkSession, sql: str) -> tuple[list[tuple[str, str]], list[str]]:
    frame = spark.sql(sql)
    # As texts: Python has no type for some intervals.
    texts = frame.selectExpr(*(f"string(`{name}`) AS `{name}`" for name in frame.columns))
    return frame.dtypes, sorted(map(str, texts.collect()))


def _quoted(text: str) -> str:
    special = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(special.get(char, char) for char in text)
