from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import (
    LogFileKind,
    LogName,
    checkpoint_name,
    commit_name,
    compaction_name,
    parse_log_name,
    version_prefix,
)
from tests.cases import each_case

_VERSIONS = st.integers(min_value=0, max_value=2**63 - 1)


@settings(deadline=None)
@given(_VERSIONS)
def test_the_name_of_a_commit_says_its_version(version):
    assert parse_log_name(commit_name(version)) == LogName(kind=LogFileKind.COMMIT, version=version)


@settings(deadline=None)
@given(_VERSIONS, st.integers(min_value=2, max_value=10**9), st.data())
def test_the_name_of_a_checkpoint_says_its_part(version, parts, data):
    part = data.draw(st.integers(min_value=1, max_value=parts))

    name = parse_log_name(checkpoint_name(version, part, parts))

    assert name == LogName(kind=LogFileKind.CHECKPOINT, version=version, part=part, parts=parts)


def test_a_checkpoint_in_one_file_has_one_part():
    name = parse_log_name("00000000000000000010.checkpoint.parquet")

    assert name == LogName(kind=LogFileKind.CHECKPOINT, version=10, part=1, parts=1)


@settings(deadline=None)
@given(_VERSIONS, st.data())
def test_the_name_of_a_compaction_says_its_versions(last, data):
    first = data.draw(st.integers(min_value=0, max_value=max(last - 1, 0)))

    name = parse_log_name(compaction_name(first, last))

    assert name == (LogName(kind=LogFileKind.COMPACTION, version=first, until=last) if first < last else None)


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_checkpoint_named_by_a_uuid_is_a_v2_checkpoint(suffix):
    name = parse_log_name(f"00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{suffix}")

    assert name == LogName(kind=LogFileKind.V2_CHECKPOINT, version=10)


@each_case(
    "name",
    [
        "_last_checkpoint",
        "00000000000000000001.crc",
        "00000000000000000006.00000000000000000004.compacted.json",
        "00000000000000000004.00000000000000000004.compacted.json",
        "00000000000000000004.99999999999999999999.compacted.json",
        "00000000000000000010.checkpoint.0000000001.parquet",
        "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.crc",
        "_sidecars/00000000000000000001.json",
        ".00000000000000000001.json.crc",
        "00000000000000000001.json.tmp",
        "1.json",
        "99999999999999999999.json",
        "0000000000000000000\u0661.json",
        "00000000000000000001.json\n",
        "",
    ],
)
def test_what_a_replay_does_not_need_has_no_name(name):
    assert parse_log_name(name) is None


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_has_a_name_or_none(text):
    name = parse_log_name(text)

    assert name is None or text.startswith(version_prefix(name.version))


@settings(deadline=None)
@given(_VERSIONS)
def test_the_files_of_a_version_sort_after_its_prefix_and_before_the_next(version):
    files = [commit_name(version), checkpoint_name(version), checkpoint_name(version, 1, 2)]
    files.append(compaction_name(version, version + 1))

    assert all(version_prefix(version) < file < version_prefix(version + 1) for file in files)
