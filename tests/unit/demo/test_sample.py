from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from gateway.config.schema import ShareConfig
from gateway.demo.sample import Progress, SampleCatalog, ensure_sample
from gateway.demo.sample_tables import MANY_FILES, SAMPLE_TABLES
from gateway.domain.log import DIRECTORY, commit_name
from gateway.domain.name import check_schema_name, check_table_name
from gateway.errors import InvalidArgument


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    said: list[str] = []
    catalog = ensure_sample(tmp_path_factory.mktemp("state") / "sample", said.append)
    return catalog, said


def test_every_table_is_there(built):
    catalog, _ = built

    for table in catalog.tables:
        assert list((catalog.location_of(table) / DIRECTORY).iterdir())


def test_progress_names_every_table(built):
    _, said = built

    assert len(said) == len(SAMPLE_TABLES)
    assert all(
        f"{table.schema}.{table.name}" in line for table, line in zip(SAMPLE_TABLES, said, strict=True)
    )


def test_names_are_names_of_the_protocol():
    for table in SAMPLE_TABLES:
        check_schema_name(table.schema)
        check_table_name(table.name)
    assert len({(table.schema, table.name) for table in SAMPLE_TABLES}) == len(SAMPLE_TABLES)
    assert len({table.schema for table in SAMPLE_TABLES}) >= 3


def test_one_table_has_ten_thousand_files(built):
    catalog, _ = built
    log = catalog.directory / "big" / "ten_thousand_files" / DIRECTORY

    assert (log / commit_name(0)).read_text().count('{"add":') == MANY_FILES == 10_000


def test_the_shares_are_a_configuration(built):
    catalog, _ = built

    [share] = [ShareConfig.model_validate(entry) for entry in catalog.to_shares()]

    tables = {(schema.name, table.name): table for schema in share.schemas for table in schema.tables}
    assert share.name == "sample"
    assert share.comment
    assert set(tables) == {(table.schema, table.name) for table in SAMPLE_TABLES}
    assert tables["sales", "inventory"].history_shared
    assert not tables["sales", "orders"].history_shared
    assert all(Path(table.location, DIRECTORY).is_dir() for table in tables.values())


def test_a_sample_that_is_there_is_used_as_it_is(built):
    catalog, _ = built
    said: list[str] = []

    assert ensure_sample(catalog.directory, said.append) == catalog
    assert said == []


def ensure_small(directory: Path, progress: Progress = lambda _: None, version: int = 1) -> SampleCatalog:
    """Leave out the tables that take long."""
    return ensure_sample(directory, progress, tables=SAMPLE_TABLES[:2], version=version)


def test_a_build_that_was_killed_is_begun_anew(tmp_path):
    directory = tmp_path / "sample"

    def kill(line: str) -> None:
        if "2 of 2" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_small(directory, kill)
    assert not directory.exists()

    said: list[str] = []
    ensure_small(directory, said.append)
    assert len(said) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".sample.lock", "sample"]


def test_an_older_sample_is_built_anew(tmp_path):
    directory = tmp_path / "sample"
    ensure_small(directory)
    (directory / "leftover").touch()

    ensure_small(directory, version=2)

    assert json.loads((directory / "sample.json").read_text()) == {"version": 2}
    assert not (directory / "leftover").exists()


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(InvalidArgument, match="something else"):
        ensure_small(tmp_path)

    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "sample").mkdir()

    assert ensure_small(tmp_path / "sample").directory == tmp_path / "sample"
    assert (tmp_path / "sample" / "sample.json").exists()


def test_two_that_build_at_once_build_once(tmp_path):
    said: list[str] = []
    threads = [
        threading.Thread(target=ensure_small, args=(tmp_path / "sample", said.append)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(said) == 2


def test_two_samples_are_the_same_bytes(tmp_path):
    contents = []
    for name in ("first", "second"):
        catalog = ensure_small(tmp_path / name)
        files = sorted(path for path in catalog.directory.rglob("*") if path.is_file())
        contents.append({str(path.relative_to(catalog.directory)): path.read_bytes() for path in files})

    assert contents[0] == contents[1]


def test_locations_are_below_the_directory(tmp_path):
    catalog = SampleCatalog(directory=tmp_path)

    assert catalog.location_of(SAMPLE_TABLES[0]) == tmp_path / "sales" / "orders"
