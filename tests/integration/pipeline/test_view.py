from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gateway.errors import InvalidArgument, Unsupported
from pipeline.jobs import view
from pipeline.progress import ignore
from pipeline.view.frame import view_frame
from pipeline.view.source import changes_since, latest_version
from tests.cases import each_case
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)

QUERY = "SELECT id, name FROM source_0 WHERE id % 2 = 1"
DELETION_VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
COLUMN_MAPPING = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"

# Each withdraws rows with a text, the last all rows.
WITHDRAWING = {
    "UPDATE {table} SET name = 'other' WHERE id = 3": b"three",
    "RESTORE TABLE {table} TO VERSION AS OF 1": b"other",
    "DELETE FROM {table} WHERE id = 3": b"three",
    "TRUNCATE TABLE {table}": b"one",
}


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table, a view that was refreshed once, and the result: each test changes copies."""
    directory = tmp_path_factory.mktemp("original")
    table = create_delta(spark, directory / "source", "id INT, name STRING", DELETION_VECTORS)
    table.insert("(1, 'one'), (2, 'two'), (3, 'three')")
    shown = ViewOnDisk(spark, directory / "view", QUERY, table.path)
    return table, shown, shown.refresh()


@pytest.fixture
def source(original, tmp_path):
    table, _, _ = original
    return table.copied(tmp_path / "source")


@pytest.fixture
def shown(original, tmp_path, source):
    """The view, which shows what is in the source."""
    _, shown, _ = original
    return shown.copied(tmp_path / "view", source.path)


def test_the_first_refresh_writes_all_rows_to_the_fresh_directory(original):
    _, shown, result = original
    assert (result["kind"], result["name"], result["version"]) == ("full", "attempt-1", 0)
    assert (result["rows"], result["rows_added"]) == (2, 2)
    assert shown.rows() == [(1, "one"), (3, "three")]


def test_the_result_names_the_version_and_the_id_of_each_source(original):
    table, _, result = original
    table_id = table.sql("DESCRIBE DETAIL {table}").first().id
    assert result["sources"] == {"s.s.t0": {"version": 1, "id": table_id}}


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
    source.insert("(9, 'new')")
    result = shown.refresh()
    assert (result["kind"], result["version"], result["rows"], result["rows_added"]) == ("append", 2, 5, 1)
    assert shown.rows() == [(1, "one"), (3, "three"), (5, "new"), (7, "new"), (9, "new")]


def test_an_append_that_adds_no_rows_to_the_view_moves_the_source_on_and_commits_nothing(shown, source):
    source.insert("(4, 'four')")
    result = shown.refresh()
    assert (result["kind"], result["version"], result["sources"]["s.s.t0"]["version"]) == ("none", 0, 2)
    source.insert("(5, 'five')")
    assert shown.refresh()["rows_added"] == 1
    assert [row[0] for row in shown.rows()] == [1, 3, 5]


def test_append_that_was_not_published_is_found_and_not_doubled_with_more_rows(shown, source):
    source.insert("(5, 'five')")
    results = [view.run(shown.spark, shown.plan(), ignore) for _ in range(2)]
    found = [(result["kind"], result["version"], result["rows_added"]) for result in results]
    assert found == [("append", 1, 1)] * 2
    assert [row[0] for row in shown.rows()] == [1, 3, 5]
    source.insert("(7, 'seven')")
    assert shown.refresh()["kind"] == "full"
    assert [row[0] for row in shown.rows()] == [1, 3, 5, 7]


def test_rows_that_are_only_moved_about_change_nothing(shown, source):
    source.sql("OPTIMIZE {table}")
    result = shown.refresh()
    assert (result["kind"], result["sources"]["s.s.t0"]["version"]) == ("none", 2)


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


def test_row_that_a_commit_withdraws_is_in_no_file_of_the_new_directory(shown, source):
    source.insert("(5, 'five')")
    for attempt, (change, withdrawn) in enumerate(WITHDRAWING.items(), 2):
        assert has_text(shown.directory, withdrawn), change
        source.sql(change)
        result = shown.refresh()
        assert (result["kind"], result["name"], result["version"]) == ("full", f"attempt-{attempt}", 0)
        assert shown.rows() == [row for row in source.rows() if row[0] % 2], change
        assert not has_text(shown.directory, withdrawn), change
    assert shown.rows() == []


def test_commits_that_do_more_than_add_rows_are_no_append(spark, source):
    changes = [
        "UPDATE {table} SET name = 'other' WHERE id = 3",
        "ALTER TABLE {table} ADD COLUMNS (more INT)",
        "RESTORE TABLE {table} TO VERSION AS OF 1",
        "TRUNCATE TABLE {table}",
    ]
    for change in changes:
        source.sql(change)
    for version, change in enumerate(changes, 2):
        counted = changes_since(spark, str(source.path), version - 1, version)
        assert counted is not None
        assert not counted.is_append, change
    assert latest_version(spark, str(source.path)) == version


def test_a_table_that_took_the_place_of_another_is_read_anew(shown, source, spark):
    source.path.rename(source.path.with_name("gone"))
    other = create_delta(spark, source.path, "id INT, name STRING")
    for number in (11, 13):
        other.insert(f"({number}, 'new')")
    assert shown.refresh()["kind"] == "full"
    assert {row[1] for row in shown.rows()} == {"new"}


def test_a_view_that_is_not_appendable_is_made_anew(shown, source):
    source.insert("(5, 'five')")
    assert shown.refresh(appendable=False)["kind"] == "full"
    assert [row[0] for row in shown.rows()] == [1, 3, 5]


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
    shown = ViewOnDisk(
        spark, tmp_path / "view", query, source.path, parameters={"property_0": "x' OR '1'='1"}
    )
    shown.refresh()
    assert shown.rows() == [(5,)]
    source.insert("""(6, "x' OR '1'='1"), (7, 'other')""")
    assert shown.refresh()["kind"] == "append"
    assert shown.rows() == [(5,), (6,)]


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


@each_case(
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
def test_names_that_a_table_cannot_have_are_told(original, query, message):
    table, _, _ = original
    with pytest.raises(InvalidArgument, match=message):
        view_frame(table.spark, query, [table.frame()], {})


@each_case("expression", ["NULL", "INTERVAL '1' DAY", "make_interval(1)"])
def test_types_that_a_table_cannot_have_are_told(original, expression):
    table, _, _ = original
    with pytest.raises(Unsupported, match="column 'x' of the view cannot be kept as"):
        view_frame(table.spark, f"SELECT {expression} AS x FROM source_0", [table.frame()], {})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("string(raise_error('no')) AS x", "USER_RAISED_EXCEPTION"),
        ("name AS ID", "two columns of the name 'ID'"),
    ],
    ids=["while it writes", "before it writes"],
)
def test_a_refresh_that_fails_leaves_nothing_behind(spark, tmp_path, original, column, message):
    table, _, _ = original
    with pytest.raises(Exception, match=message):
        ViewOnDisk(spark, tmp_path / "view", f"SELECT id, {column} FROM source_0", table.path).refresh()
    assert not list((tmp_path / "view").glob("*"))


def test_directories_are_deleted_when_the_plan_says_so_or_when_nothing_in_them_is_young(shown):
    former = shown.root.parent / "former" / "attempt-0"
    for directory in (former, *(shown.root / name for name in ("before", "orphan", "kept"))):
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").touch()
    now = int(time.time() * 1000)
    # Without a time nothing is told to be old.
    result = shown.refresh(delete=["before", "never-was"], former=["former"])
    assert (result["deleted"], result["forgotten"]) == (["before", "never-was"], [])
    result = shown.refresh(orphans_before_ms=now - 60_000, keep=["kept"], former=["former"])
    assert (result["deleted"], result["forgotten"]) == ([], [])
    assert former.exists()
    result = shown.refresh(orphans_before_ms=now + 60_000, keep=["kept"], former=["former", "gone"])
    assert (result["deleted"], result["forgotten"]) == (["orphan"], ["former", "gone"])
    assert sorted(path.name for path in shown.root.iterdir()) == ["attempt-1", "kept"]
    assert not (shown.root.parent / "former").exists()


def has_text(directory, text):
    return any(text in file.read_bytes() for file in directory.rglob("*.parquet"))


def checkpoint(table):
    java = table.spark._jvm.org.apache.spark.sql.delta  # noqa: SLF001 -- Delta writes none on demand in Python
    session = table.spark._jsparkSession  # noqa: SLF001
    java.DeltaLog.forTable(session, str(table.path)).checkpoint()
    java.DeltaLog.clearCache()
