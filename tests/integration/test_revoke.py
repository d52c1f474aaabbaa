"""``sluice revoke`` beside a running gateway, a store and a Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from gateway.commands.revocation.cache import drop_cached
from gateway.config.load import load
from gateway.config.schema import Config
from tests.components import ALL_IN_ONE, SEAWEEDFS, VALKEY
from tests.deployments import Deployment, all_in_one
from tests.ports import free_ports
from tests.stores.redis import Server, running_server, valkey_program
from tests.waiting import eventually

TOKENS = {name: f"token-of-{name}" for name in ("acme", "globex")}
ORDERS = "/shares/sales/schemas/emea/tables/orders/temporary-table-credentials"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def key_id(self) -> str:
        return str(self.body["credentials"]["awsTempCredentials"]["accessKeyId"])


@dataclass(frozen=True, slots=True)
class Gateway:
    deployment: Deployment

    @property
    def file(self) -> Path:
        return self.deployment.edge.config_file

    def ask(self, name: str) -> Answer:
        request = urllib.request.Request(
            f"{self.deployment.base_url}{ORDERS}",
            method="POST",
            headers={"Authorization": f"Bearer {TOKENS[name]}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, json.load(refusal))

    def revoke(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway", "revoke", "--config", str(self.file), "--yes", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def valkey(tmp_path) -> Iterator[Server]:
    with running_server(valkey_program(), tmp_path / "valkey") as server:
        yield server


@pytest.fixture
def gateway(seaweedfs, valkey, tmp_path) -> Iterator[Gateway]:
    bucket = seaweedfs.make_bucket("lake-revoke")
    seaweedfs.put(bucket, "orders/_delta_log/0.json")
    table = {"name": "orders", "location": f"s3://{bucket}/orders", "historyShared": True}
    options = {
        "profile": "seaweedfs",
        "endpoint": seaweedfs.endpoint,
        "role": {"arn": seaweedfs.role_arn},
        "identity": {
            "kind": "keys",
            "accessKeyId": seaweedfs.gateway.access_key_id,
            "secretAccessKey": {"value": seaweedfs.gateway.secret_access_key},
        },
        "acceptCaseVariants": True,
    }
    settings = {
        "shares": [
            {"name": "sales", "accessModes": ["dir"], "schemas": [{"name": "emea", "tables": [table]}]}
        ],
        # The longest that a gateway takes: an operation that is slow once must not be a miss.
        "cache": {"redis": {"url": valkey.url, "timeout": "5s"}},
        "storages": [{"name": "lake", "prefix": f"s3://{bucket}", "vendor": "s3", "options": options}],
        "recipients": [
            {"name": name, "shares": ["sales"], "tokens": [{"hash": hash_of(token)}]}
            for name, token in TOKENS.items()
        ],
    }
    with all_in_one(tmp_path, settings) as deployment:
        eventually(lambda: deployment.edge.metric("sluice_cache_redis_up") == 1)
        yield Gateway(deployment)


@pytest.mark.component(SEAWEEDFS, VALKEY, ALL_IN_ONE)
def test_recipient_gets_nothing_more_from_a_running_gateway_and_others_do(gateway):
    assert gateway.ask("acme").status == 200

    result = gateway.revoke("acme")

    # SeaweedFS cannot end sessions, which is said with the time at which they end.
    assert result.returncode == 1, result.stderr
    assert "lake (s3): NOT cut off, lives until" in result.stdout
    assert "cache: 1 dropped from Redis" in result.stdout
    assert json.loads(result.stderr)["principal"] == "acme"
    eventually(lambda: gateway.ask("acme").status == 403)
    assert gateway.ask("acme").body["errorCode"] == "PERMISSION_DENIED"
    assert gateway.ask("globex").status == 200


@pytest.mark.component(SEAWEEDFS, VALKEY, ALL_IN_ONE)
def test_recipient_that_keeps_access_is_not_given_the_old_credential_again(gateway):
    old = gateway.ask("acme").key_id
    assert gateway.ask("acme").key_id == old

    result = gateway.revoke("acme", "--keep-access")

    assert result.returncode == 1, result.stderr
    eventually(lambda: gateway.ask("acme").key_id != old)
    config = load(gateway.file, {}).config
    assert [recipient.revoked_at is None for recipient in config.recipients] == [False, True]
    assert not config.recipients[0].disabled


def cached_by(state_dir: Path, **redis: str) -> Config:
    return Config.model_validate(
        {
            "stateDir": str(state_dir),
            "keys": {"current": {"secret": "a-secret-that-is-long-enough-for-all-of-this"}},
            "cache": {"redis": redis},
        }
    )


@pytest.mark.component(VALKEY)
async def test_drop_reaches_what_is_being_minted_just_now(valkey, tmp_path):
    config = cached_by(tmp_path, url=valkey.url, timeout="30s")
    dropped = await drop_cached(config, "acme", ["lake"])

    assert dropped.done
    assert dropped.words == "0 dropped from Redis"
    # A mark is left, which whoever began before finds.
    with valkey.client() as client:
        assert client.dbsize() > 0


async def test_redis_that_is_not_there_is_said_so(tmp_path):
    config = cached_by(tmp_path, url=f"redis://127.0.0.1:{free_ports(1)[0]}")
    dropped = await drop_cached(config, "acme", [])

    assert not dropped.done
    assert "Redis cannot be reached" in dropped.words
    assert "no gateway serves what is there" in dropped.words


@pytest.mark.slow
def test_question_is_asked_on_the_terminal_while_standard_error_goes_to_a_file(tmp_path):
    config, record = tmp_path / "server.yaml", tmp_path / "revocations.jsonl"
    config.write_text(f"recipients: [{{name: acme, tokens: [{{hash: 'sha256:{'0' * 64}'}}], shares: []}}]\n")
    command = [sys.executable, "-m", "gateway", "revoke", "acme", "--config", str(config)]
    ours, theirs = os.openpty()
    with record.open("wb") as errors:
        revoking = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=errors)
    os.close(theirs)
    # The terminal keeps it until it is asked for.
    os.write(ours, b"y\n")
    shown = _read_terminal(ours)

    assert revoking.wait(120) == 0, record.read_text()

    assert "Go on? [y/N]" in shown
    assert [json.loads(line)["principal"] for line in record.read_text().splitlines()] == ["acme"]


def _read_terminal(descriptor: int) -> str:
    """Return what is written to a terminal until everybody has left it."""
    shown = b""
    with suppress(OSError):
        while piece := os.read(descriptor, 4096):
            shown += piece
    os.close(descriptor)
    return shown.decode()
