from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gateway.errors import InvalidArgument, Unsupported
from pipeline.jobs import view
from pipeline.progress import ignore
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)

QUERY = "SELECT id, name FROM source_0 WHERE id % 2 = 1"
DELETION_VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
COLUMN_MAPPING = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table, and a view that was refreshed once: each test changes copies of them."""
    directory = tmp_path_factory.mktemp("original")
    table = create_delta(spark, directory / "source", "id INT, name STRING", DELETION_VECTORS)
    table.insert("(1, 'one'), (2, 'two'), (3, 'three')")
    shown = ViewOnDisk(spark, directory / "view", QUERY, table.path)
    shown.refresh()
    return table, shown


@pytest.fixture
def source(original, tmp_path):
    table, _ = original
    return table.copied(tmp_path / "source")


@pytest.fixture
def shown(original, tmp_path, source):
    """The view, which shows what is in the source."""
    _, shown = original
    return shown.copied(tmp_path / "view", source.path)


@pytest.fixture
def new_view(spark, tmp_path, source):
    """The view, before its first refresh."""
    return ViewOnDisk(spark, tmp_path / "view", QUERY, source.path)


def test_the_first_refresh_writes_all_rows_to_the_fresh_directory(new_view):
    result = new_view.refresh()
    assert (result["kind"], result["name"], result["version"]) == ("full", "attempt-1", 0)
    assert (result["rows"], result["rows_added"]) == (2, 2)
    assert new_view.rows() == [(1, "one"), (3, "three")]


def test_the_result_names_the_version_and_the_id_of_each_source(new_view, source):
    table_id = source.sql("DESCRIBE DETAIL {table}").first().id
    assert new_view.refresh()["sources"] == {"s.s.t0": {"version": 1, "id": table_id}}


def test_nothing_is_done_where_no_source_has_changed(shown):
    result = shown.refresh()
    assert (result["kind"], result["name"], result["version"]) == ("none", "attempt-1", 0)
    assert [path.name for path in shown.root.iterdir()] == ["attempt-1"]


def test_rows_that_were_added_are_appended_to_the_directory(shown, source):
    for number in (5, 6, 7):
        source.insert(f"({number}, 'new')")
    result = shown.refresh()
    assert (result["kind"], result["name"], result["version"]) == ("append", "attempt-1", 1)
    assert (result["rows"], result["rows_added"]) == (4, 2)
    assert result["sources"]["s.s.t0"]["version"] == 4
    assert shown.rows() == [(1, "one"), (3, "three"), (5, "new"), (7, "new")]


def test_appends_follow_each_other(shown, source):
    for number in (5, 7, 9):
        source.insert(f"({number}, 'new')")
        assert shown.refresh()["kind"] == "append"
    assert [row[0] for row in shown.rows()] == [1, 3, 5, 7, 9]


def test_an_append_that_adds_no_rows_to_the_view_moves_the_source_on_and_commits_nothing(shown, source):
    source.insert("(4, 'four')")
    result = shown.refresh()
    assert (result["kind"], result["version"], result["sources"]["s.s.t0"]["version"]) == ("none", 0, 2)
    source.insert("(5, 'five')")
    assert shown.refresh()["rows_added"] == 1
    assert [row[0] for row in shown.rows()] == [1, 3, 5]


def test_an_append_that_nobody_was_told_of_is_found_and_not_done_again(shown, source):
    source.insert("(5, 'five')")
    view.run(shown.spark, shown.plan(), ignore)
    result = shown.refresh()
    assert (result["kind"], result["version"], result["rows_added"]) == ("append", 1, 1)
    assert [row[0] for row in shown.rows()] == [1, 3, 5]


def test_an_append_that_nobody_was_told_of_is_not_doubled_when_more_rows_have_come_since(shown, source):
    source.insert("(5, 'five')")
    view.run(shown.spark, shown.plan(), ignore)
    source.insert("(7, 'seven')")
    assert shown.refresh()["kind"] == "full"
    assert [row[0] for row in shown.rows()] == [1, 3, 5, 7]


def test_rows_that_are_only_moved_about_change_nothing(new_view, source):
    source.insert("(5, 'five')")
    new_view.refresh()
    source.sql("OPTIMIZE {table}")
    result = new_view.refresh()
    assert (result["kind"], result["sources"]["s.s.t0"]["version"]) == ("none", 3)


def test_rows_that_were_added_and_then_moved_about_are_appended_once(shown, source):
    source.insert("(5, 'five')")
    source.sql("OPTIMIZE {table}")
    source.insert("(7, 'seven')")
    assert shown.refresh()["kind"] == "append"
    assert [row[0] for row in shown.rows()] == [1, 3, 5, 7]


def test_rows_whose_files_are_gone_since_they_were_moved_are_taken_from_a_new_reading(shown, source):
    source.insert("(5, 'five')")
    source.sql("OPTIMIZE {table}")
    needed = {Path(unquote(urlsplit(file).path)) for file in source.frame().inputFiles()}
    for file in set(source.path.glob("*.parquet")) - needed:
        file.unlink()
    assert shown.refresh()["kind"] == "full"
    assert [row[0] for row in shown.rows()] == [1, 3, 5]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {table} WHERE id = 3",
        "UPDATE {table} SET name = 'other' WHERE id = 3",
        "ALTER TABLE {table} ADD COLUMNS (more INT)",
        "RESTORE TABLE {table} TO VERSION AS OF 0",
        "TRUNCATE TABLE {table}",
    ],
)
def test_what_is_no_append_makes_a_new_directory_without_what_is_not_shown_any_more(shown, source, change):
    source.insert("(5, 'five')")
    source.sql(change)
    result = shown.refresh()
    assert (result["kind"], result["name"], result["version"]) == ("full", "attempt-2", 0)
    assert shown.rows() == [row[:2] for row in source.rows() if row[0] % 2]
    is_held = any(b"three" in file.read_bytes() for file in shown.directory.rglob("*.parquet"))
    assert is_held == ((3, "three") in shown.rows())


def test_a_table_that_took_the_place_of_another_is_read_anew(shown, source, spark):
    for number in (5, 7, 9):
        source.insert(f"({number}, 'old')")
    source.path.rename(source.path.with_name("gone"))
    other = create_delta(spark, source.path, "id INT, name STRING")
    for number in (11, 13, 15, 17, 19, 21):
        other.insert(f"({number}, 'new')")
    assert shown.refresh()["kind"] == "full"
    assert {row[1] for row in shown.rows()} == {"new"}


def test_a_view_that_is_not_appendable_is_made_anew(spark, tmp_path, source):
    shown = ViewOnDisk(
        spark, tmp_path / "view", "SELECT count(*) AS n FROM source_0", source.path, appendable=False
    )
    shown.refresh()
    source.insert("(5, 'five')")
    assert shown.refresh()["kind"] == "full"
    assert shown.rows() == [(4,)]


def test_a_view_of_two_tables_is_made_anew_when_one_of_them_changes(spark, tmp_path, source):
    other = create_delta(spark, tmp_path / "other", "id INT, city STRING")
    other.insert("(1, 'Kyiv')")
    query = "SELECT a.name, b.city FROM source_0 a JOIN source_1 b ON a.id = b.id"
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path, other.path)
    shown.refresh()
    other.insert("(2, 'Lviv')")
    result = shown.refresh()
    assert (result["kind"], result["sources"]["s.s.t1"]["version"]) == ("full", 2)
    assert shown.rows() == [("one", "Kyiv"), ("two", "Lviv")]


def test_a_source_with_mapped_columns_and_deletion_vectors_is_appended_from_exactly(spark, tmp_path):
    source = create_delta(
        spark,
        tmp_path / "source",
        "id INT, old STRING, region STRING",
        f"PARTITIONED BY (region) {COLUMN_MAPPING}",
    )
    source.insert("(1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
    source.sql("DELETE FROM {table} WHERE id = 2")
    source.sql("ALTER TABLE {table} RENAME COLUMN old TO name")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)
    shown.refresh()
    source.insert("(4, 'd', 'x'), (5, 'e', NULL)")
    assert shown.refresh()["kind"] == "append"
    assert shown.rows() == source.rows() == [(1, "a", "x"), (3, "c", "y"), (4, "d", "x"), (5, "e", None)]


def test_columns_that_were_widened_or_added_are_shown_by_a_new_directory(spark, tmp_path):
    source = create_delta(
        spark, tmp_path / "source", "id INT", "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    source.insert("(1)")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT * FROM source_0", source.path)
    shown.refresh()
    source.sql("ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT")
    source.insert("(5000000000)")
    assert shown.refresh()["kind"] == "full"
    assert shown.rows() == [(1,), (5_000_000_000,)]
    source.sql("ALTER TABLE {table} ADD COLUMNS (name STRING)")
    source.insert("(2, 'two')")
    assert shown.refresh()["kind"] == "full"
    assert shown.rows() == [(1, None), (2, "two"), (5_000_000_000, None)]


def test_commits_that_are_gone_from_the_log_make_a_new_directory(shown, source):
    source.insert("(5, 'five')")
    checkpoint(source)
    source.insert("(7, 'seven')")
    (source.path / "_delta_log" / f"{2:020}.json").unlink()
    assert shown.refresh()["kind"] == "full"
    assert [row[0] for row in shown.rows()] == [1, 3, 5, 7]


def test_properties_are_bound_and_never_read_as_sql(spark, tmp_path, source):
    source.insert("""(5, "x' OR '1'='1")""")
    query = "SELECT id FROM source_0 WHERE name = :property_0"
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path)
    shown.refresh(parameters={"property_0": "x' OR '1'='1"})
    assert shown.rows() == [(5,)]


def test_a_query_is_read_in_one_way_however_spark_is_set_up(spark, tmp_path, source):
    session = spark.newSession()
    for name in ("spark.sql.variable.substitute", "spark.sql.parser.escapedStringLiterals"):
        session.conf.set(name, "true")
    query = r"select '${env:HOME}' as text, '\t' as tab from source_0 limit 1"
    shown = ViewOnDisk(session, tmp_path / "view", query, source.path, appendable=False)
    shown.refresh()
    assert shown.rows() == [("${env:HOME}", "\t")]


def test_a_property_that_a_recipient_has_not_is_a_null_string(spark, tmp_path, source):
    columns = "id, :property_0 AS p, array_contains(array(name), :property_0) AS c"
    query = f"SELECT {columns} FROM source_0 WHERE :property_0 IS NULL"
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path, parameters={"property_0": None})
    shown.refresh()
    assert shown.rows() == [(1, None, None), (2, None, None), (3, None, None)]
    assert (
        spark.read.format("delta").load(str(shown.directory)).schema["p"].dataType.simpleString() == "string"
    )


def test_properties_are_bound_in_appends_too(spark, tmp_path, source):
    query = "SELECT id FROM source_0 WHERE name = :property_0"
    shown = ViewOnDisk(spark, tmp_path / "view", query, source.path, parameters={"property_0": "one"})
    shown.refresh()
    source.insert("(5, 'one'), (6, 'other')")
    assert shown.refresh()["kind"] == "append"
    assert shown.rows() == [(1,), (5,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT id, name AS ID FROM source_0", "two columns of the name 'ID'"),
        ("SELECT id + 1 AS `a b` FROM source_0", "column 'a b' of the view needs another name"),
        ("SELECT struct(id AS a, name AS A) AS s FROM source_0", "two columns of the name 's.A'"),
        (
            "SELECT array(struct(id AS `x;y`)) AS s FROM source_0",
            "column 's.x;y' of the view needs another name",
        ),
    ],
)
def test_names_that_a_table_cannot_have_are_told(spark, tmp_path, source, query, message):
    with pytest.raises(InvalidArgument, match=message):
        ViewOnDisk(spark, tmp_path / "view", query, source.path).refresh()
    assert not (tmp_path / "view" / "attempt-1").exists()


@pytest.mark.parametrize("expression", ["NULL", "INTERVAL '1' DAY", "make_interval(1)"])
def test_types_that_a_table_cannot_have_are_told(spark, tmp_path, source, expression):
    with pytest.raises(Unsupported, match="column 'x' of the view cannot be kept as"):
        ViewOnDisk(spark, tmp_path / "view", f"SELECT {expression} AS x FROM source_0", source.path).refresh()


def test_a_refresh_that_fails_leaves_nothing_behind(spark, tmp_path, source):
    query = "SELECT id, string(raise_error('no')) AS x FROM source_0"
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        ViewOnDisk(spark, tmp_path / "view", query, source.path).refresh()
    assert not list((tmp_path / "view").iterdir())


def test_directories_are_deleted_when_the_plan_says_so(shown, source):
    source.sql("DELETE FROM {table} WHERE id = 3")
    shown.refresh()
    assert shown.refresh(delete=["attempt-1", "never-was"])["deleted"] == ["attempt-1", "never-was"]
    assert [path.name for path in shown.root.iterdir()] == ["attempt-2"]


def test_what_attempts_that_died_have_left_goes_when_it_is_old_enough(shown):
    for name in ("orphan", "kept"):
        (shown.root / name).mkdir()
        (shown.root / name / "part-0.parquet").touch()
    now = int(time.time() * 1000)
    assert shown.refresh(orphans_before_ms=now - 60_000, keep=["kept"])["deleted"] == []
    assert shown.refresh(orphans_before_ms=now + 60_000, keep=["kept"])["deleted"] == ["orphan"]
    assert sorted(path.name for path in shown.root.iterdir()) == ["attempt-1", "kept"]


def test_what_a_former_definition_left_goes_when_nothing_in_it_is_young(shown):
    former = shown.root.parent / "former" / "attempt-0"
    former.mkdir(parents=True)
    (former / "part-0.parquet").touch()
    now = int(time.time() * 1000)
    assert shown.refresh(former=["former"])["forgotten"] == []
    assert shown.refresh(former=["former"], orphans_before_ms=now - 60_000)["forgotten"] == []
    assert former.exists()
    assert shown.refresh(former=["former", "gone"], orphans_before_ms=now + 60_000)["forgotten"] == [
        "former",
        "gone",
    ]
    assert [path.name for path in shown.root.parent.iterdir() if path.name == "former"] == []


def checkpoint(table):
    java = table.spark._jvm.org.apache.spark.sql.delta
    java.DeltaLog.forTable(table.spark._jsparkSession, str(table.path)).checkpoint()
    java.DeltaLog.clearCache()
