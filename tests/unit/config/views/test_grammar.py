"""What a view may be made of, and what it may not."""

from __future__ import annotations

from gateway.config.views.functions import ALLOWED
from tests.cases import each_case
from tests.fakes.view_config import compile_sql, words_of

GOOD = [
    "select a, b from s.d.t",
    "select distinct a from s.d.t where b > 1 order by a limit 10",
    "select * from s.d.t where region = current_recipient('region')",
    "with x as (select a from s.d.t), y as (select a from x) select y.a from y join s.d.u on y.a = u.a",
    "select a from s.d.t union all select a from s.d.u",
    "(select a from s.d.t) intersect (select a from s.d.u) order by a",
    "select a, count(*) as n, sum(b) filter (where b > 0) as s from s.d.t group by a having count(*) > 1",
    "select a, count(*) as n from s.d.t group by rollup (a)",
    "select a, rank() over (partition by b order by c desc nulls last) as r from s.d.t",
    "select sum(a) over (order by b rows between unbounded preceding and current row) as s from s.d.t",
    "select a from s.d.t where a in (select a from s.d.u) and exists (select 1 from s.d.v where v.a = t.a)",
    "select case when a > 1 then 'x' else 'y' end as z, cast(a as decimal(10, 2)) as d from s.d.t",
    "select transform(xs, x -> x + a) as ys, m['k'] as k, xs[0] as x, st.f.g as g from s.d.t",
    "select date '2024-01-01' as d, interval 3 days as i, extract(year from d) as y, 1L as l from s.d.t",
    "select percentile_cont(0.5) within group (order by a) as m, count(distinct a, b) as n from s.d.t",
    "select a from s.d.t left anti join s.d.u using (a) cross join s.d.v",
    "select * except (a) from s.d.t where a like 'x%' escape '!' or not b rlike 'y' or c <=> d or e is null",
    "select current_date as today, current_timestamp() as now, now() as n from s.d.t",
    "select a from s.d.t -- the rest\n where b = 1 /* and /* c */ = 2 */",
    "SELECT A FROM S.D.T AS X WHERE X.A = 1",
    "select a from `s`.`d`.`t`",
    "from s.d.t select a",
]
BAD = {
    "drop table s.d.t": "must be a query",
    "delete from s.d.t": "must be a query",
    "insert into s.d.t select * from s.d.u": "must be a query",
    "create table x as select * from s.d.t": "must be a query",
    "show tables": "must be a query",
    "select a from s.d.t; drop table s.d.t": "must be one query, not 2 statements",
    "": "needs a query",
    "select a from": "cannot be read as Spark SQL",
    "select 'a from s.d.t": "is not SQL",
    "select /*+ broadcast(t) */ a from s.d.t": "hints are not allowed",
    "select a from s.d.t tablesample (10 percent)": "TABLESAMPLE is not allowed",
    "select a from s.d.t version as of 3": "time travel is not allowed",
    "select a from s.d.t timestamp as of '2024-01-01'": "time travel is not allowed",
    "select a from s.d.t@v3": "not allowed",
    "select a from delta.`s3://lake/t`": "is not a table here",
    "select a from parquet.`/etc/passwd`": "is not a table here",
    "select a from t": "is not a table here",
    "select a from source_0": "is not a table here",
    "select a from s.d.x": "there is no table or view 's.d.x'; did you mean s.d.",
    "select * from read_files('s3://other')": "the table function read_files is not allowed",
    "select * from range(10)": "the table function range is not allowed",
    "select * from identifier('s.d.t')": "the table function identifier is not allowed",
    "select * from values (1) as x(a)": "VALUES is not allowed",
    "select * from s.d.t lateral view explode(xs) as x": "LATERAL is not allowed",
    "select * from s.d.t join lateral (select 1 as x)": "LATERAL is not allowed",
    "select explode(xs) as x from s.d.t": "the function explode is not one that views may call",
    "select * from s.d.t pivot (sum(a) for b in (1, 2))": "PIVOT is not allowed",
    "select a from s.d.t natural join s.d.u": "not allowed",
    "with recursive x as (select 1 as a from s.d.t) select a from x": "not allowed",
    "select :p as a from s.d.t": "has no parameters",
    "select ? as a from s.d.t": "has no parameters",
    "select ${x} as a from s.d.t": "has no variables",
    "select @x as a from s.d.t": "has no variables",
    "select transform(a) using 'cat' from s.d.t": "cannot be read as Spark SQL",
    "select _metadata.file_path as p from s.d.t": "_metadata is not a column",
    "select t._metadata as p from s.d.t": "_metadata is not a column",
    "select user as u from s.d.t": "means something else",
    "select `current_user` as u from s.d.t": "means something else",
    "select current_user() as u from s.d.t": "the function current_user is not one",
    "select input_file_name() as f from s.d.t": "the function input_file_name is not one",
    "select java_method('java.lang.System', 'exit') as x from s.d.t": "the function java_method is not one",
    "select reflect('a', 'b') as x from s.d.t": "the function reflect is not one",
    "select rand() as x from s.d.t": "the function rand is not one",
    "select uuid() as x from s.d.t": "the function uuid is not one",
    "select monotonically_increasing_id() as x from s.d.t": "is not one that views may call",
    "select current_recipient(a) as x from s.d.t": "takes one name of a property",
    "select current_recipient('a', 'b') as x from s.d.t": "takes one name of a property",
    "select current_recipient() as x from s.d.t": "takes one name of a property",
    "select uppr(a) as x from s.d.t": "the function uppr is not one that views may call; did you mean upper?",
    "select a from s.d.t qualify row_number() over (order by a) = 1": "QUALIFY is not allowed",
    "select a from s.d.t for update": "not allowed",
    "select a from s.d.t distribute by a": "not allowed",
    "select array(1, 2)[0] as x from s.d.t": "use element_at",
    "select X'1A' as x from s.d.t": "not allowed",
    "select '\\d+' as x from s.d.t": "has a literal with the escape \\d",
    "select '\\u0041' as x from s.d.t": "has a literal with the escape \\u",
    "select 'it''s' as x from s.d.t": "a quote that is doubled",
    "select `a$b` as x from s.d.t": "has a character that no name may have",
    "select a as `x``y` from s.d.t": "has a character that no name may have",
    "select cast(a as interval) as x from s.d.t": "not allowed",
    f"select {'(' * 30}a{')' * 30} as x from s.d.t": "nests brackets more than 24 deep",
    f"select {'a + ' * 6000}a as x from s.d.t": "has more than 10,000 words",
    f"select '{'x' * 70000}' as x from s.d.t": "has more than 65,536 characters",
}


@each_case("sql", GOOD)
def test_a_query_of_allowed_parts_is_compiled(sql):
    assert compile_sql(sql).query.count("source_0") >= 1


@each_case("sql", BAD, ids=[sql[:60] for sql in BAD])
def test_whatever_is_not_allowed_is_refused_with_its_reason(sql):
    assert BAD[sql] in words_of(sql)


def test_all_that_is_wrong_with_a_query_is_told_at_once():
    words = words_of("select uppr(a) as a, rnd() as b, :x as c from s.d.t tablesample (1 rows)")

    assert "did you mean upper?" in words
    assert "did you mean round?" in words
    assert "has no parameters" in words
    assert "TABLESAMPLE" in words


# What reads outside of the query, runs other code, or says something else each time.
FORBIDDEN = """
java_method reflect try_reflect input_file_name input_file_block_start input_file_block_length
current_user user session_user current_catalog current_database current_schema rand randn random
randstr uniform shuffle uuid monotonically_increasing_id spark_partition_id read_files http_request
http ai_query version assert_true raise_error explode explode_outer posexplode inline stack
json_tuple parse_url from_csv from_json from_xml to_avro from_avro schema_of_json aes_decrypt
aes_encrypt secret try_secret event_log cloud_files_state table_changes current_metastore
getdbproperty sequence_number session_window window window_time is_account_group_member
current_timezone localtimestamp unix_timestamp collation identifier variant_explode sql_keywords
"""


def test_a_function_that_reads_outside_or_differs_each_time_is_not_on_the_list():
    assert sorted(set(FORBIDDEN.split()) & set(ALLOWED)) == []
