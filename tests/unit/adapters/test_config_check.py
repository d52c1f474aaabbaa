from __future__ import annotations

from pathlib import Path

import pytest

from gateway.adapters.config_check import load_or_tell_all, read_whole
from gateway.config.faults import ConfigError

STORAGE = """
storages:
- name: lake
  prefix: s3://lake
  vendor: s3
  options:
    profile: minio
    endpoint: https://minio.example.com
    identity: {kind: keys, accessKeyId: AK, secretAccessKey: {file: /gone}}
"""
SHARES = """
shares:
- name: s
  schemas:
  - name: d
    tables:
    - {name: t, location: s3://lake/t, historyShared: true, accessModes: [dir]}
"""
WHO = "authorization: {bearerToken: 0123456789abcdef}"
FINE = f"{WHO}{STORAGE}{SHARES}"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "server.yaml"


def paths_of(file: Path, text: str) -> list[tuple[int | None, str]]:
    file.write_text(text, encoding="utf-8")
    return [(fault.line, fault.path) for fault in read_whole(file, {}).faults]


def test_a_fine_file_has_no_faults(file):
    assert paths_of(file, FINE) == []
    assert load_or_tell_all(file, {}).config.storages is not None


def test_faults_of_the_file_its_vendors_and_its_tables_are_told_together_in_its_order(file):
    text = f"port: x\n{FINE}".replace("profile: minio", "profile: mini").replace(", accessModes: [dir]", "")
    text += "    - {name: u, location: s3://lake/u, accessModes: [dri]}\n"

    assert paths_of(file, text) == [
        (1, "port"),
        (8, "storages[0].options.profile"),
        (18, "shares[0].schemas[0].tables[1].accessModes[0]"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("vendor: s3", "vendor: [s3]", "storages[0].vendor"),
        ("prefix: s3://lake", "prefix: [s3]", "storages[0].prefix"),
        ("prefix: s3://lake", "prefix: ftp://lake", "storages[0].prefix"),
        ("  options:", "  setings:", "storages[0].setings"),
        ("  options:\n", "  options: none\n  x:\n", "storages[0].options"),
        ("accessModes: [dir]", "accessModes: dir", "shares[0].schemas[0].tables[0].accessModes"),
        ("location: s3://lake/t", "location: [t]", "shares[0].schemas[0].tables[0].location"),
    ],
)
def test_what_is_broken_is_told_once(file, old, new, path):
    faults = [found for _, found in paths_of(file, FINE.replace(old, new))]

    assert faults.count(path) == 1
    # Beside it stands what the configuration's own checks say, and nothing of a vendor's.
    assert not [found for found in faults if ".options." in found or found.endswith("tables[0].location")][1:]


def test_what_only_the_catalog_finds_is_told(file):
    recipient = f"recipients: [{{name: bearer, tokens: [{{hash: 'sha256:{'0' * 64}'}}]}}]\n"

    assert [path for _, path in paths_of(file, recipient + FINE)] == ["authorization.bearerToken"]


def test_a_file_that_cannot_be_loaded_is_refused_with_all_its_faults(file):
    file.write_text(f"port: x\n{FINE}".replace("kind: keys", "kind: kyes"), encoding="utf-8")

    with pytest.raises(ConfigError) as raised:
        load_or_tell_all(file, {})

    assert [fault.path for fault in raised.value.faults] == ["port", "storages[0].options.identity.kind"]


def test_a_file_of_which_nothing_is_understood_has_its_own_faults_only(file):
    assert [path for _, path in paths_of(file, "- a list")] == [""]
