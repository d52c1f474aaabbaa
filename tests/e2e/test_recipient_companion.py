"""The process that renews credentials for an engine: what it answers, to whom, and how long it lives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sluice_recipient.address import parse_name
from sluice_recipient.companion import Address, Companion, process_companion
from sluice_recipient.profile import Profile, parse_profile

from gateway.ports import utcnow
from tests.e2e.recipient_lake import ARCHIVE, LOCATIONS, ORDERS, recipient_environment
from tests.fakes.credential_gateway import CredentialGateway, serving
from tests.waiting import eventually

_SCRIPT = """
import os, signal, sys
from sluice_recipient.companion import Companion
print(Companion().pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def gateway() -> Iterator[CredentialGateway]:
    served = CredentialGateway(
        mint=lambda location: {
            "AccessKeyId": location,
            "SecretAccessKey": "made-up",
            "SessionToken": "made-up",
            "Expiration": utcnow() + timedelta(hours=1),
        },
        tables=LOCATIONS,
        token="made-up-token",
        region="us-east-1",
        endpoint="http://127.0.0.1:1",
    )
    with serving(served):
        yield served


@pytest.fixture
def profile(gateway) -> Profile:
    return parse_profile(json.loads(gateway.profile))


@pytest.fixture(scope="module")
def companion() -> Iterator[Companion]:
    started = Companion()
    yield started
    started.close()


def test_each_table_has_an_address_with_its_own_credential(companion, profile):
    found = {table: _get(companion.address_of(profile, parse_name(table))) for table in (ORDERS, ARCHIVE)}

    assert {table: answer["AccessKeyId"] for table, answer in found.items()} == {
        table: LOCATIONS[table] for table in (ORDERS, ARCHIVE)
    }


def test_the_same_table_has_the_same_address_and_one_credential(companion, profile, gateway):
    first, second = (companion.address_of(profile, parse_name(ORDERS)) for _ in range(2))
    _get(first)
    _get(second)

    assert first == second
    assert len(gateway.issued) == 1


@pytest.mark.parametrize("token", ["", "wrong", "Bearer made-up-token"])
def test_who_does_not_have_its_token_gets_nothing(companion, profile, gateway, token):
    address = companion.address_of(profile, parse_name(ORDERS))

    with pytest.raises(urllib.error.HTTPError, match="401"):
        _get(address, token)
    assert gateway.issued == []


def test_its_token_is_for_this_user_only(companion, profile):
    file = companion.address_of(profile, parse_name(ORDERS)).token_file

    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_ends_when_it_is_closed():
    companion = Companion()
    companion.close()

    assert not companion.is_running


def test_it_ends_with_a_parent_that_is_killed():
    command = [sys.executable, "-c", _SCRIPT]
    parent = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env=recipient_environment()
    )

    assert parent.returncode == -signal.SIGKILL
    eventually(lambda: not _is_alive(int(parent.stdout)), "the companion ends with its parent")


def test_another_is_started_when_it_has_died(profile):
    first = process_companion()
    assert process_companion() is first
    os.kill(first.pid, signal.SIGKILL)
    first.close()

    second = process_companion()
    assert second is not first
    assert _get(second.address_of(profile, parse_name(ORDERS)))["AccessKeyId"] == LOCATIONS[ORDERS]
    second.close()


def _get(address: Address, token: str | None = None) -> dict[str, Any]:
    own = address.token_file.read_text() if token is None else token
    request = urllib.request.Request(address.uri, headers={"Authorization": own})
    with urllib.request.urlopen(request, timeout=60) as answer:
        content: dict[str, Any] = json.load(answer)
        return content


def _is_alive(pid: int) -> bool:
    try:
        # One that has ended, and that nobody has asked about yet, is a zombie.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
