from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.commands import check_config
from gateway.commands.check_config import summarize
from gateway.config.faults import ConfigError
from gateway.config.load import load

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def run(capsys, tmp_path):
    def run_one(text: str, env=None) -> tuple[int, str]:
        file = tmp_path / "server.yaml"
        file.write_text(text)
        parser = argparse.ArgumentParser()
        check_config.configure(parser)
        status = check_config.run(parser.parse_args(["--config", str(file)]), env or {})
        return status, capsys.readouterr().out

    return run_one


@pytest.fixture
def summary_of(tmp_path):
    def summarize_text(text: str) -> list[str]:
        file = tmp_path / "server.yaml"
        file.write_text(text)
        loaded = load(file, {"HOME": "/home/a"})
        return list(summarize(loaded, Path("server.yaml"), NOW))

    return summarize_text


def test_what_would_be_served_is_told(summary_of):
    text = f"""
publicUrl: https://sharing.example.com/delta-sharing
shares:
- name: sales
  accessModes: [url, dir]
  schemas:
  - name: emea
    tables:
    - {{name: orders, location: /data/orders, historyShared: true}}
    - {{name: items, location: /data/items, accessModes: [url]}}
- name: empty
recipients:
- name: acme
  tokens:
  - {{hash: "sha256:{"0" * 64}", expires: 2029-12-31}}
  - {{hash: "sha256:{"1" * 64}", expires: 2030-01-10}}
  - {{hash: "sha256:{"2" * 64}", expires: 2031-01-01}}
  - {{hash: "sha256:{"3" * 64}"}}
  shares: [sales, EMPTY]
- name: gone
  disabled: true
  identities: [{{issuer: i, subject: s}}]
  shares: "*"
storages:
- {{name: lake, prefix: /data, vendor: local}}
deltaTableCacheSize: 10
"""
    assert "\n".join(summary_of(text)) == (
        """\
server.yaml is fine.

services    edge, catalog, snapshot, presign, vending in this process
REST        http://127.0.0.1:8080/delta-sharing, for recipients https://sharing.example.com/delta-sharing
metrics     http://127.0.0.1:9401/metrics
keys        kept in /home/a/.local/state/sluice, made when first needed
shares      2 with 1 schema and 2 tables
            sales: 1 schema, 2 tables (url, dir)
            empty: 0 schemas, 0 tables
recipients  2
            acme: 3 valid tokens, sales, EMPTY
            gone (disabled): 0 valid tokens, 1 identity, every share
storages    1
            lake: /data (local)
warnings    3
            deltaTableCacheSize: has no effect here: snapshots are bounded by bytes: set snapshots.memory
            recipients[0].tokens[0]: a token of acme expired at 2029-12-31 00:00 UTC
            recipients[0].tokens[1]: a token of acme expires soon, at 2030-01-10 00:00 UTC"""
    )


def test_a_process_of_its_own_tells_where_the_others_are(summary_of):
    lines = summary_of(
        f"""
services:
  run: [edge]
  listen: unix:/run/sluice.sock
  addresses: {{catalog: [10.0.0.1:1, 10.0.0.2:1], snapshot: c:1, presign: d:1, vending: e:1}}
keys: {{current: {{localUrl: {"k" * 32}}}}}
host: "::1"
endpoint: /
ssl: {{selfSigned: true}}
"""
    )
    assert "services    edge in this process" in lines
    assert "            catalog at 10.0.0.1:1, 10.0.0.2:1" in lines
    assert "            vending at e:1" in lines
    assert "REST        https://[::1]:8080, for recipients the same" in lines
    assert "gRPC        unix:/run/sluice.sock" in lines
    assert "keys        from the configuration" in lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("allowAnonymous: true", "recipients  everybody may read everything (allowAnonymous)"),
        (
            "authorization: {bearerToken: 0123456789abcdef}",
            "recipients  0, and whoever has authorization.bearerToken, for every share",
        ),
        (
            "allowAnonymous: true",
            "storages    none named: locations are read with each vendor's standard credentials, "
            "for url access only",
        ),
    ],
)
def test_who_may_read_and_with_what_is_told(summary_of, text, line):
    assert line in summary_of(text)


def test_long_lists_are_cut(summary_of):
    shares = ", ".join(f"{{name: s{number}}}" for number in range(1020))
    names = ", ".join(f"s{number}" for number in range(12))
    token = f"tokens: [{{hash: 'sha256:{'0' * 64}'}}]"
    lines = summary_of(f"shares: [{shares}]\nrecipients: [{{name: a, {token}, shares: [{names}]}}]")
    assert "            … and 1,000 more" in lines
    assert "            a: 1 valid token, s0, s1, s2, s3, s4 … and 7 more" in lines
    assert len(lines) < 40


def test_a_fine_file_is_no_problem(run):
    status, text = run("allowAnonymous: true")
    assert status == 0
    assert "is fine." in text


def test_every_fault_of_a_file_is_printed(run):
    status, text = run("port: x\nshares: [" + ", ".join("{}" for _ in range(150)) + "]")
    assert status == 1
    lines = text.splitlines()
    assert lines[0].endswith("has 152 faults:")
    assert lines[1] == "  line 1: port: must be a whole number (found 'x')"
    assert len(lines) == 153


def test_a_vendor_that_is_not_installed_is_a_fault_with_its_line(run):
    status, text = run("allowAnonymous: true\nstorages:\n- {name: a, prefix: /a, vendor: locla}")
    assert status == 1
    assert "line 3: storages[0].vendor: there is no vendor 'locla'" in text
    assert "did you mean local?" in text


def test_what_the_catalog_cannot_take_up_is_a_fault(run):
    token = f"tokens: [{{hash: 'sha256:{'0' * 64}'}}]"
    text = f"authorization: {{bearerToken: 0123456789abcdef}}\nrecipients: [{{name: bearer, {token}}}]"
    status, text = run(text)
    assert status == 1
    assert "authorization.bearerToken: " in text


def test_a_file_that_is_not_there_is_bad_usage(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        check_config.run(argparse.Namespace(config=tmp_path / "missing.yaml"), {})


def test_a_revocation_in_the_future_is_warned_of(summary_of):
    token = f"tokens: [{{hash: 'sha256:{'0' * 64}'}}]"
    storages = "prefix: /a, vendor: local"
    lines = summary_of(
        f"""
recipients:
- {{name: a, {token}, revokedAt: 2029-12-31}}
- {{name: b, revokedAt: 2030-01-02}}
storages:
- {{name: a, {storages}, revokedAt: 2031-01-01}}
"""
    )
    assert "warnings    2" in lines
    warned = [line for line in lines if "revokedAt: lies in the future" in line]
    assert [line.split(":")[0].strip() for line in warned] == [
        "recipients[1].revokedAt",
        "storages[0].revokedAt",
    ]


def test_dir_access_that_its_vendor_cannot_give_is_a_fault_with_its_line(run):
    status, text = run(
        "allowAnonymous: true\n"
        "storages: [{name: disk, prefix: /a, vendor: local}]\n"
        "shares:\n"
        "- name: s\n"
        "  schemas:\n"
        "  - name: c\n"
        "    tables:\n"
        "    - {name: t, location: /a/t, historyShared: true, accessModes: [dir]}\n"
    )
    assert status == 1
    assert "line 8: shares[0].schemas[0].tables[0].location: table s.c.t cannot offer dir access" in text
    assert "'disk'" in text


S3 = """
authorization: {bearerToken: 0123456789abcdef}
storages:
- name: lake
  prefix: s3://lake
  vendor: s3
  options:
    profile: minio
    endpoint: https://minio.example.com
    identity: {kind: keys, accessKeyId: AK, secretAccessKey: {file: /gone/secret}}
shares:
- name: s
  schemas:
  - name: c
    tables:
    - {name: t, location: s3://lake/t, historyShared: true, accessModes: [dir]}
"""


def test_a_secrets_file_that_is_not_here_is_warned_of(run):
    status, text = run(S3)
    assert status == 0
    assert (
        "storages[0].options.identity.secretAccessKey.file: names a file that cannot be read here: "
        "/gone/secret: No such file or directory"
    ) in text


def test_tables_that_nobody_could_read_are_a_fault(run):
    host = "lake@onelake.dfs.fabric.microsoft.com"
    status, text = run(
        "authorization: {bearerToken: 0123456789abcdef}\n"
        "storages:\n"
        f"- {{name: lake, prefix: 'abfss://{host}', vendor: azure, options: {{identity: {{kind: chain}}}}}}\n"
        "shares:\n"
        "- name: s\n"
        "  schemas:\n"
        "  - name: c\n"
        "    tables:\n"
        f"    - {{name: t, location: 'abfss://{host}/t'}}\n"
    )
    assert status == 1
    assert "line 9: shares[0].schemas[0].tables[0].location: table s.c.t cannot offer url access" in text
    assert "'lake'" in text
    assert "OneLake" in text


def test_a_fault_of_the_schema_hides_no_fault_of_an_option(run):
    status, text = run("port: x\n" + S3.replace("accessKeyId: AK", "accesKeyId: AK"))
    assert status == 1
    assert text.splitlines()[1:] == [
        "  line 1: port: must be a whole number (found 'x')",
        "  line 11: storages[0].options.identity.accesKeyId: unknown option; did you mean accessKeyId?",
    ]


def test_a_secret_in_an_option_is_never_shown(run):
    for text in (
        S3.replace("{file: /gone/secret}", "hunter2"),
        S3.replace("{file: /gone/secret}", "{valeu: hunter2}"),
        S3.replace("https://minio.example.com", "https://me:hunter2@minio"),
    ):
        status, shown = run(text)
        assert status == 1
        assert "hunter2" not in shown
