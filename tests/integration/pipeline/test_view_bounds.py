"""A source's log that leads elsewhere: what another table holds is in no view of this one."""

from __future__ import annotations

import json
import re

import pytest

from gateway.errors import Unsupported
from pipeline.view.source import changes_since
from tests.cases import each_case
from tests.components import SPARK_PIPELINE
from tests.integration.pipeline.view_plans import ViewOnDisk
from tests.spark import create_delta

pytestmark = pytest.mark.component(SPARK_PIPELINE)

DELETION_VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
QUERY = "SELECT * FROM source_0"
REFUSED = "table s.s.t0 has files outside of its directory"
# Of files of another table, ``hr``, beside the source.
PATHS = [
    "file:{place}/{name}",
    "file://{place}/{name}",
    "{place}/{name}",
    "%2F..{place}/{name}",
    "../hr/{name}",
    "x/../../hr/{name}",
    "%2e%2e/hr/{name}",
    "x%2F..%2F..%2Fhr/{name}",
    "file:{own}/../hr/{name}",
    "file:{own}/%2e%2E/hr/{name}",
    "file:{own}-2/{name}",
]


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A table, a view that was refreshed once, and another table: each test changes copies of them."""
    directory = tmp_path_factory.mktemp("original")
    table = create_delta(spark, directory / "source", "id INT, name STRING", DELETION_VECTORS)
    table.insert("(1, 'one')")
    view = ViewOnDisk(spark, directory / "view", QUERY, table.path)
    view.refresh()
    other = create_delta(spark, directory / "hr", "id INT, name STRING", DELETION_VECTORS)
    hidden = spark.range(5).selectExpr("int(id) AS id", "'hidden' AS name").coalesce(1)
    hidden.write.format("delta").mode("append").save(str(other.path))
    other.sql("DELETE FROM {table} WHERE id = 3")
    return table, view, other


@pytest.fixture
def source(original, tmp_path):
    table, _, _ = original
    return table.copied(tmp_path / "source")


@pytest.fixture
def other(original, tmp_path):
    """Another table, with a file of which rows were deleted."""
    _, _, other = original
    return other.copied(tmp_path / "hr")


@pytest.fixture
def shown(original, tmp_path, source):
    """The view, which shows what is in the source."""
    _, view, _ = original
    return view.copied(tmp_path / "view", source.path)


def last_add(table):
    """Return what the last commit to a table has added."""
    commit = max((table.path / "_delta_log").glob("*.json"))
    actions = map(json.loads, commit.read_text().splitlines())
    return next(action["add"] for action in actions if "add" in action)


def commit(table, version, **add):
    text = json.dumps({"commitInfo": {"timestamp": 0, "operation": "WRITE"}})
    text += "\n" + json.dumps({"add": {**add, "dataChange": True}}) + "\n"
    (table.path / "_delta_log" / f"{version:020}.json").write_text(text)


def commit_file_of(other, source, path):
    """Commit a file of another table to the source, under a path."""
    add = last_add(other) | {"deletionVector": None}
    path = path.format(place=other.path, own=source.path, name=add["path"])
    commit(source, 2, **add | {"path": path})


def check_refused(view):
    """Refresh a view, and check that it is refused and that nothing of another table is told or left."""
    before = list(view.root.glob("*"))
    with pytest.raises(Unsupported, match=REFUSED) as raised:
        view.refresh()
    assert "hr" not in re.sub(REFUSED, "", raised.value.message)
    held = b"".join(file.read_bytes() for file in view.root.rglob("*") if file.is_file())
    assert b"hidden" not in held
    assert list(view.root.glob("*")) == before


@pytest.mark.parametrize("path", [PATHS[0], PATHS[-4]], ids=["absolute", "encoded"])
def test_view_is_not_refreshed_from_a_log_that_names_files_of_another_table(shown, source, other, path):
    commit_file_of(other, source, path)
    check_refused(shown)


@each_case(("number", "path"), enumerate(PATHS))
def test_source_that_names_a_file_of_another_table_is_refused_and_no_append(
    spark, original, other, tmp_path, number, path
):
    source = original[0].copied(tmp_path / f"source-{number}")
    commit_file_of(other, source, path)
    check_refused(ViewOnDisk(spark, tmp_path / f"view-{number}", QUERY, source.path))
    changes = changes_since(spark, str(source.path), 1, 2)
    assert changes is not None
    assert not changes.is_append


@each_case("kind", ["absolute", "relative"])
def test_source_that_names_a_deletion_vector_of_another_table_is_refused(
    spark, original, other, tmp_path, kind
):
    source = original[0].copied(tmp_path / f"source-{kind}")
    add, vector = last_add(source), last_add(other)["deletionVector"]
    if kind == "absolute":
        (file,) = other.path.glob("deletion_vector_*.bin")
        vector |= {"storageType": "p", "pathOrInlineDv": f"file:{file}"}
    else:
        vector |= {"pathOrInlineDv": f"../hr/{vector['pathOrInlineDv']}"}
    commit(source, 2, **add | {"deletionVector": vector})
    check_refused(ViewOnDisk(spark, tmp_path / f"view-{kind}", QUERY, source.path))


def test_a_clone_is_read_where_its_base_is_a_place_of_its_entry(spark, tmp_path, other):
    clone = tmp_path / "clone"
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {other.name}")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT id FROM source_0", clone)
    with pytest.raises(Unsupported, match=REFUSED):
        shown.refresh()
    source = {"name": "s.s.t0", "url": str(clone), "allowed": [f"file:{clone}", f"file:{other.path}"]}
    shown.refresh(sources=[source])
    assert shown.rows() == [(0,), (1,), (2,), (4,)]


def test_odd_names_of_the_tables_own_are_no_other_places(spark, tmp_path):
    source = create_delta(spark, tmp_path / "a b+c%d", "id INT, `at:x` STRING", "PARTITIONED BY (`at:x`)")
    source.insert("(1, '../x'), (2, '12:30'), (3, 'a%2Fb +c'), (4, NULL)")
    shown = ViewOnDisk(spark, tmp_path / "view", "SELECT id FROM source_0", source.path)
    shown.refresh()
    source.insert("(5, '..'), (6, 's3://x/y')")
    assert shown.refresh()["kind"] == "append"
    assert [row[0] for row in shown.rows()] == [1, 2, 3, 4, 5, 6]
