"""Columns that a query names, and those that it has."""

from __future__ import annotations

from tests.cases import each_case
from tests.fakes.view_config import faults_of, words_of

COLUMNS = {"t": ("id", "Region", "amount", "tags", "place"), "u": ("id", "name"), "v": ("code",)}

GOOD = [
    "select ID, region from s.d.t",
    "select t.id, s.d.t.region, x.name from s.d.t join s.d.u as x on x.id = t.id",
    "select id, name from s.d.t join s.d.u using (id)",
    "select place.city.zip as zip, t.place.city as city, tags[0] as tag from s.d.t",
    "select amount * 2 as twice, twice + 1 as more from s.d.t",
    "select region, count(*) as n from s.d.t group by region having n > 1 order by n",
    "select transform(tags, x -> concat(x, region)) as y from s.d.t",
    "with c as (select id as key from s.d.t), d(k) as (select key from c) select k from d",
    "select y.k from (select id from s.d.t) as y(k)",
    "select id from s.d.t where exists (select 1 from s.d.u where u.id = t.id and region = name)",
    "select id from s.d.t union all select id from s.d.u order by id",
    "select t.*, u.name from s.d.t cross join s.d.u",
    "select * except (id), 1 as id from s.d.t",
]


@each_case("sql", GOOD)
def test_columns_that_are_there_are_found(sql):
    assert words_of(sql, COLUMNS) == ""


@each_case(
    ("sql", "words"),
    [
        ("select regin from s.d.t", "no table here has the column 'regin'; did you mean Region?"),
        ("select t.regin from s.d.t", "t has no column 'regin'; did you mean Region?"),
        ("select x.id from s.d.t", "no table here has the column 'x.id'"),
        ("select id from s.d.t join s.d.u on true", "'id' is one of t and of u: write the table before it"),
        ("select id from s.d.t where exists (select 1 from s.d.u where u.nme = t.id)", "did you mean name?"),
        ("with c as (select id as key from s.d.t) select id from c", "no table here has the column 'id'"),
        ("select transform(tags, x -> y) as z from s.d.t", "no table here has the column 'y'"),
        ("select id, ID from s.d.t", "two columns 'ID'"),
        ("select * from s.d.t cross join s.d.u", "two columns 'id'"),
        ("select id + 1 from s.d.t", "column 1 of its result needs a name"),
        ("select count(*), id as `a b` from s.d.t group by id", "column 1 of its result needs a name"),
        ("select id as `a b` from s.d.t", "no column may be called 'a b'"),
        ("select id from s.d.t order by amont", "did you mean amount?"),
        ("select id from s.d.t union all select amont from s.d.t", "did you mean amount?"),
    ],
)
def test_what_is_wrong_with_columns_is_told_with_the_nearest_right_name(sql, words):
    assert words in words_of(sql, COLUMNS)


def test_a_table_whose_columns_are_not_known_is_believed():
    assert words_of("select what, t.ever from s.d.t join s.d.u on true", {"u": ("id",)}) == ""
    assert "u has no column" in words_of("select what, u.ever from s.d.t join s.d.u on true", {"u": ("id",)})


def test_the_columns_of_a_view_are_those_of_its_result_whatever_is_known_of_tables():
    faults = faults_of(
        {"name": "below", "sql": "select id as key from s.d.t"},
        {"name": "above", "sql": "select id from s.d.below"},
        {"name": "parts", "from": "s.d.below", "columns": ["key", "kez"]},
    )

    assert [str(fault) for fault in faults] == [
        "shares[0].schemas[0].views[1].sql: no table here has the column 'id'",
        "shares[0].schemas[0].views[2].columns: below has no column 'kez'; did you mean key?",
    ]
