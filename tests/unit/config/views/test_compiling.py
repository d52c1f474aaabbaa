"""Views as Spark is given them: sources and properties by our names, other views inlined."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.config.report import Report
from gateway.config.views.compiling import Views
from gateway.config.views.dialect import Limits, escaped, parse_query, tokenize, write
from tests.cases import each_case
from tests.fakes.view_config import compile_sql, faults_of, view_config


def compile_all(*views):
    report = Report()
    compiled = Views(view_config(*views), report).compile()
    assert not report.has_faults, report.faults({})
    return {key[2]: view for key, view in compiled.items()}


def test_sources_and_properties_have_our_names_in_the_order_of_their_use():
    view = compile_sql(
        "select t.a from S.D.T join s.d.u on t.a = u.a where t.b = current_recipient('region') "
        "and u.c = current_recipient('tier') and u.d = current_recipient('region')"
    )

    assert view.sources == (("s", "d", "t"), ("s", "d", "u"))
    assert view.properties == ("region", "tier")
    assert view.query == (
        "SELECT `t`.`a` FROM `source_0` AS `T` JOIN `source_1` AS `u` ON `t`.`a` = `u`.`a` "
        "WHERE `t`.`b` = :property_0 AND `u`.`c` = :property_1 AND `u`.`d` = :property_0"
    )


def test_a_common_table_expression_called_like_a_source_is_another_thing():
    view = compile_sql(
        "with source_0 as (select a from s.d.t), source_1 as (select a from source_0) "
        "select source_1.a from source_1 join s.d.u on source_1.a = u.a"
    )

    assert view.query == (
        "WITH `query_0` AS (SELECT `a` FROM `source_0` AS `t`), "
        "`query_1` AS (SELECT `a` FROM `query_0` AS `source_0`) "
        "SELECT `source_1`.`a` FROM `query_1` AS `source_1` "
        "JOIN `source_1` AS `u` ON `source_1`.`a` = `u`.`a`"
    )


def test_an_inner_common_table_expression_hides_an_outer_one_in_its_own_query_only():
    view = compile_sql(
        "with x as (select a from s.d.t) select a from x where a in "
        "(with x as (select a from s.d.u) select a from x)"
    )

    assert view.query == (
        "WITH `query_0` AS (SELECT `a` FROM `source_0` AS `t`), "
        "`query_1` AS (SELECT `a` FROM `source_1` AS `u`) "
        "SELECT `a` FROM `query_0` AS `x` WHERE `a` IN (SELECT `a` FROM `query_1` AS `x`)"
    )


def test_a_common_table_expression_does_not_see_itself_nor_those_behind_it():
    assert "is not a table here" in str(
        faults_of({"name": "it", "sql": "with x as (select a from x) select a from x"})
    )
    behind = "with x as (select a from y), y as (select a from s.d.t) select a from x"
    assert "is not a table here" in str(faults_of({"name": "it", "sql": behind}))


def test_a_column_under_its_tables_full_name_is_one_of_its_alias():
    assert compile_sql("select s.d.t.a from s.d.t").query == "SELECT `t`.`a` FROM `source_0` AS `t`"


@each_case(
    "sql",
    [
        # A second table of the name, a common table expression, an alias, a query with the alias.
        "select a from s.d.t where exists (select 1 from s.e.t where s.e.t.a = s.d.t.a)",
        "select a from s.d.t where exists "
        "(with t as (select a from s.d.u) select 1 from t where t.a = s.d.t.a)",
        "select a from s.d.t where exists (select 1 from s.d.u as T where t.a = s.d.t.a)",
        "select a from s.d.t where exists (select 1 from (select a from s.d.u) as t where t.a = s.d.t.a)",
        # Further in, and in other places.
        "select a from s.d.t where a in (select u.a from s.d.u where exists "
        "(select 1 from s.e.t where s.e.t.a = s.d.t.a))",
        "select (select max(x.a) from s.d.u as x join s.e.T on s.d.t.a = s.e.t.a) as m from s.d.t",
        "with x as (select a from s.d.t where exists (select 1 from s.e.t where s.d.t.a)) select a from x",
        # Beside each other, where only one of them may have the column.
        "select s.d.t.a from s.d.t join s.e.t on true",
        "select s.d.t.a from s.d.t join s.d.u as t on true",
        # A table of no such name: a column of it may be called so, and have fields.
        "select a from s.d.t where exists (select 1 from s.d.u where u.a = s.d.t.a)",
        # What a list and a function name.
        "select struct(1 as a) as t from s.d.t order by s.d.t.a",
        "select exists(xs, t -> t.a = s.d.t.a) as e from s.d.t",
        "select a from s.d.t union all select a from s.d.u order by s.d.t.a",
    ],
)
def test_a_full_name_that_something_else_could_be_taken_for_is_refused(sql):
    (fault,) = faults_of({"name": "it", "sql": sql})

    assert "give each table an alias with AS" in str(fault)


def test_a_full_name_means_the_table_that_is_read_right_there():
    view = compile_sql(
        "select s.d.t.a from s.d.t where s.d.t.b in (select s.e.t.b from s.e.t where s.E.T.c = 1) "
        "union all select s.d.t.* from S.D.T"
    )

    assert view.query == (
        "SELECT `t`.`a` FROM `source_0` AS `t` WHERE `t`.`b` IN "
        "(SELECT `t`.`b` FROM `source_1` AS `t` WHERE `T`.`c` = 1) "
        "UNION ALL SELECT `t`.* FROM `source_0` AS `T`"
    )


def test_fields_of_a_view_below_are_not_taken_for_a_table_above():
    views = compile_all(
        {"name": "below", "sql": "select s.d.t.a from s.d.u as s"},
        {"name": "above", "sql": "select x.a from s.d.below as x join s.d.t on s.d.t.a = x.a"},
    )

    assert "SELECT `s`.`d`.`t`.`a` FROM `source_0` AS `s`" in views["above"].query


def test_a_view_upon_a_view_is_one_query_over_tables():
    views = compile_all(
        {"name": "below", "from": "s.d.t", "columns": ["a"], "filter": "b = current_recipient('region')"},
        {"name": "above", "sql": "select x.a from s.d.BELOW as x where x.a > 1"},
    )

    assert views["above"].query == (
        "SELECT `x`.`a` FROM (SELECT `t`.`a` FROM `source_0` AS `t` WHERE `b` = :property_0) AS `x` "
        "WHERE `x`.`a` > 1"
    )
    assert views["above"].properties == ("region",)
    assert views["above"].sources == (("s", "d", "t"),)


def test_views_that_are_made_of_each_other_are_told_with_the_whole_way_round():
    faults = faults_of(
        {"name": "one", "sql": "select * from s.d.two"},
        {"name": "two", "from": "s.d.three"},
        {"name": "three", "sql": "select a from s.d.one"},
        {"name": "beside", "sql": "select * from s.d.one"},
    )

    assert "s.d.one → s.d.two → s.d.three → s.d.one" in str(faults[0])
    assert faults[1].path == "shares[0].schemas[0].views[1].from"
    assert len(faults) == 3


def test_views_that_double_at_each_step_are_refused_before_they_fill_the_memory():
    doubling = [{"name": "v0", "sql": "select a from s.d.t"}]
    for number in range(1, 25):
        below = f"s.d.v{number - 1}"
        doubling.append({"name": f"v{number}", "sql": f"select x.a from {below} x join {below} y on true"})

    assert "reads views more than 64 times" in str(faults_of(*doubling)[0])


@each_case(
    ("sql", "expected"),
    [
        ("select a, upper(b) as b from s.d.t where c > 1 and d = current_recipient('x')", True),
        ("select * from s.d.t", True),
        ("select x.a from (select a from s.d.t where b = 1) x where x.a > 2", True),
        ("select transform(xs, x -> x + 1) as ys, exists(xs, x -> x > 1) as e from s.d.t", True),
        ("select distinct a from s.d.t", False),
        ("select a from s.d.t limit 3", False),
        ("select a from s.d.t order by a", False),
        ("select count(*) as n from s.d.t", False),
        ("select max(a) as n from s.d.t", False),
        ("select a, rank() over (order by a) as r from s.d.t", False),
        ("select t.a from s.d.t join s.d.u on true", False),
        ("select t.a from s.d.t cross join s.d.t u", False),
        ("select a from s.d.t union all select a from s.d.u", False),
        ("select a from s.d.t where a in (select a from s.d.u)", False),
        ("select (select max(a) from s.d.u) as m from s.d.t", False),
        ("select a from s.d.t where d > current_date", False),
        ("select a from s.d.t where d > current_date()", False),
        ("select a, now() as n from s.d.t", False),
        ("with x as (select a from s.d.t) select a from x", False),
        ("select x.a from (select a from s.d.t limit 3) x", False),
        ("select x.a from (select count(*) as a from s.d.t) x", False),
    ],
)
def test_only_a_projection_and_filter_of_one_table_row_by_row_can_be_appended_to(sql, expected):
    assert compile_sql(sql).is_appendable is expected


@each_case(
    ("sql", "expected"),
    [
        ("select a from s.d.t where d > current_date", True),
        ("select a from s.d.t where d > CURRENT_DATE()", True),
        ("select a from s.d.t where exists (select 1 from s.d.u where u.d > current_timestamp)", True),
        ("with x as (select a, Now() as n from s.d.t) select a from x", True),
        ("select t.current_date as a, 'now()' as now from s.d.t", False),
    ],
)
def test_a_query_that_asks_for_the_time_is_known_by_it(sql, expected):
    assert compile_sql(sql).uses_clock is expected


def test_a_view_upon_one_that_asks_for_the_time_asks_too():
    views = compile_all(
        {"name": "below", "from": "s.d.t", "filter": "d > current_date"},
        {"name": "above", "sql": "select a from s.d.below"},
    )

    assert views["above"].uses_clock


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXT)
def test_no_text_of_a_literal_changes_the_structure_and_every_text_survives(text):
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    sql = f"select a from s.d.t where b = '{quoted}' and c = 1"
    plain = compile_sql("select a from s.d.t where b = 'x' and c = 1").query

    written = compile_sql(sql).query

    assert written == plain.replace("'x'", f"'{escaped(text)}'")
    assert "'" not in escaped(text)
    assert "$" not in escaped(text)
    assert [token.token_type for token in tokenize(written)] == [
        token.token_type for token in tokenize(plain)
    ]
    assert read_as_spark(escaped(text)) == text


@given(TEXT)
def test_no_name_of_a_property_gets_into_the_query(text):
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")

    view = compile_sql(f"select a from s.d.t where b = current_recipient('{quoted}')")

    assert view.query == "SELECT `a` FROM `source_0` AS `t` WHERE `b` = :property_0"
    assert view.properties == (text,)


NAMES = st.sampled_from(
    ["a", "b", "source_0", "query_0", "select", "from", "x y", "ä", "1", "property_0", "t"]
)


@st.composite
def expressions(draw, depth=3):
    if depth == 0:
        return draw(
            st.one_of(
                NAMES.map(lambda name: f"`{name}`"),
                NAMES.map(lambda name: f"t.`{name}`"),
                st.integers(-5, 5).map(str),
                st.sampled_from(
                    ["'x'", "'it\\'s'", "1.5", "null", "true", "date '2024-01-01'", "1e3", "'--'"]
                ),
                st.just("current_recipient('p')"),
            )
        )
    inner = expressions(depth=depth - 1)
    one, two = draw(inner), draw(inner)
    form = draw(
        st.sampled_from(
            [
                "({0} + {1})",
                "{0} = {1}",
                "({0} and {1})",
                "not {0}",
                "coalesce({0}, {1})",
                "-({0})",
                "({0} || {1})",
                "case when {0} then {1} else null end",
                "cast({0} as string)",
                "({0} in ({1}, 2))",
                "({0} is null)",
                "({0} between {1} and 3)",
                "{0} like {1}",
                "transform(xs, x -> x + {0})",
                "if({0}, {1}, 0)",
                "({0} % {1})",
                "({0} - {1})",
                "({0} / {1})",
                "({0} div {1})",
                "{0} <=> {1}",
                "({0} or {1})",
            ]
        )
    )
    return f"({form.format(one, two)})"


@given(expressions())
def test_what_is_written_reads_as_what_was_written(expression):
    written = compile_sql(f"select ({expression}) as x from s.d.t where ({expression}) is not null").query

    plain = written.replace(":property_0", "NULL")
    assert write(parse_query(plain, Limits(checks_escapes=False))) == plain


def read_as_spark(text: str) -> str:
    """Read what stands between the quotes of a literal by Spark's rules, as far as we write any."""
    units = bytearray()
    position = 0
    while position < len(text):
        if text.startswith("\\u", position):
            units += bytes.fromhex(text[position + 2 : position + 6])
            position += 6
        else:
            units += text[position].encode("utf-16-be")
            position += 1
    return units.decode("utf-16-be")
