from __future__ import annotations

import ast
import hashlib
import io
import os
import tarfile

import pytest

from tests.oracles.fixtures import GENERATORS, REPORT, generators_digest
from tests.oracles.plan import TABLES
from tests.oracles.table_archive import ARCHIVE, NOT_ARCHIVED, digest_of, pack, unpack
from tests.repository import ROOT


def test_cache_key_of_spark_tables_covers_every_module_that_writes_them():
    found, pending = set(), ["tests/oracles/spark_tables.py"]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += _imported_tests(file)
    # The plan's one value that matters is part of the key.
    assert found - set(GENERATORS) == {"tests/oracles/plan.py"}


def _imported_tests(file: str) -> list[str]:
    tree = ast.parse((ROOT / file).read_text())
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [f"{module.replace('.', '/')}.py" for module in modules if module.startswith("tests.")]


def test_archive_of_spark_tables_is_that_of_the_present_generators():
    assert digest_of() == generators_digest(), "the generators have changed: run `make spark-tables`"


def test_archived_tables_are_those_of_the_plan():
    with tarfile.open(ARCHIVE) as archive:
        reports = {name.partition("/")[0] for name in archive.getnames() if name.endswith(f"/{REPORT}")}
    assert reports == set(TABLES) - NOT_ARCHIVED


@pytest.fixture
def written(tmp_path):
    """A directory with two tables, one commit of which has a time with all its nanoseconds."""
    directory = tmp_path / "written"
    for name in ("first", "second"):
        log = directory / name / "table" / "_delta_log"
        log.mkdir(parents=True)
        (log / "0.json").write_text(name)
        os.utime(log / "0.json", ns=(0, 1_700_000_000_123_999_999))
    return directory


def test_packed_table_is_unpacked_with_the_time_of_its_commits_in_milliseconds(written, tmp_path):
    pack(written, ["first", "second"], "digest", tmp_path / "archive")
    unpack(tmp_path / "unpacked", ["second"], "digest", tmp_path / "archive")
    [file] = (path for path in (tmp_path / "unpacked").rglob("*") if path.is_file())
    assert file.relative_to(tmp_path / "unpacked").as_posix() == "second/table/_delta_log/0.json"
    assert file.read_text() == "second"
    assert file.stat().st_mtime_ns // 10**6 == 1_700_000_000_123


@pytest.mark.parametrize("microseconds", [17 * 10**14 + 124_000, 17 * 10**14 + 1, 17 * 10**14 + 999_999])
def test_time_of_a_commit_is_exact_to_the_microsecond(written, tmp_path, microseconds):
    os.utime(written / "first/table/_delta_log/0.json", ns=(0, microseconds * 1000))
    pack(written, ["first"], "digest", tmp_path / "archive")
    unpack(tmp_path / "unpacked", ["first"], "digest", tmp_path / "archive")
    unpacked = tmp_path / "unpacked/first/table/_delta_log/0.json"
    assert unpacked.stat().st_mtime_ns == microseconds * 1000


def test_archive_of_other_generators_is_not_unpacked(written, tmp_path):
    pack(written, ["first"], "other", tmp_path / "archive")
    unpack(tmp_path / "unpacked", ["first"], "digest", tmp_path / "archive")
    assert not (tmp_path / "unpacked").exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("first/../../escaped", tarfile.REGTYPE),
        ("../escaped", tarfile.REGTYPE),
        ("/first/escaped", tarfile.REGTYPE),
        ("first", tarfile.REGTYPE),
        ("first/link", tarfile.SYMTYPE),
        ("first/link", tarfile.LNKTYPE),
        ("first/device", tarfile.CHRTYPE),
    ],
)
def test_archive_with_a_member_outside_its_tables_is_refused(tmp_path, name, kind):
    archive = tmp_path / "archive"
    with tarfile.open(archive, "w:xz") as packed:
        for member_name, member_kind in (("digest", tarfile.REGTYPE), (name, kind)):
            member = tarfile.TarInfo(member_name)
            member.type, member.linkname = member_kind, "digest"
            member.size = len(b"digest") if member.isreg() else 0
            packed.addfile(member, io.BytesIO(b"digest"))
    (tmp_path / "archive.sha256").write_text(hashlib.sha256(archive.read_bytes()).hexdigest())

    with pytest.raises(ValueError, match="not allowed"):
        unpack(tmp_path / "inner" / "unpacked", ["first"], "digest", archive)
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == {"archive", "archive.sha256"}


def test_archive_that_is_not_the_committed_one_is_refused(written, tmp_path):
    pack(written, ["first"], "digest", tmp_path / "other")
    pack(written, ["second"], "digest", tmp_path / "archive")
    (tmp_path / "other").replace(tmp_path / "archive")

    with pytest.raises(ValueError, match="is not the archive whose hash is in"):
        unpack(tmp_path / "unpacked", ["first"], "digest", tmp_path / "archive")


def test_committed_archive_is_the_one_whose_hash_is_committed(tmp_path):
    unpack(tmp_path, [], generators_digest())
