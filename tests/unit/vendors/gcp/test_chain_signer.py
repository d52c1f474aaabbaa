from __future__ import annotations

import asyncio
import json

import pytest
from google.auth.exceptions import DefaultCredentialsError

from gateway.domain.location import parse_location
from gateway.errors import Unavailable, Unsupported
from gateway.ports import SigningCost
from tests.fakes.signer import FakeSigner
from tests.unit.vendors.gcp.google import FakeAnswer, FakeGoogle
from tests.unit.vendors.gcp.signed import GATEWAY, key_file, small_key, urls_of
from vendors.gcp.chain_signer import ChainSigner, find_signer
from vendors.gcp.config import Account, ChainOptions
from vendors.gcp.service_key import ServiceKey

TABLE = parse_location("gs://lake/sales/orders")
CHAIN = ChainOptions(kind="chain")


@pytest.fixture
def google():
    return FakeGoogle()


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """Put a file where the environment names it."""

    def place(text: str) -> None:
        file = tmp_path / "credentials.json"
        file.write_text(text)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    return place


def test_key_of_the_surroundings_signs_and_nobody_is_asked(google, surroundings):
    surroundings(key_file())

    found = find_signer(CHAIN, google.transport)

    assert isinstance(found, ServiceKey)
    assert found.email == GATEWAY
    assert len(found.sign(b"text")) == small_key().key_size // 8
    assert google.asked == []


def test_account_of_an_impersonation_is_found(google, surroundings):
    base = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    url = f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{GATEWAY}:generateAccessToken"
    surroundings(
        json.dumps(
            {
                "type": "impersonated_service_account",
                "source_credentials": base,
                "service_account_impersonation_url": url,
            }
        )
    )

    assert find_signer(CHAIN, google.transport) == Account(email=GATEWAY)


def test_machines_account_is_found_by_asking_the_machine(monkeypatch):
    monkeypatch.setattr("google.auth.default", lambda **_: (Machine(), None))

    assert find_signer(CHAIN, FakeGoogle().transport) == Account(email=GATEWAY)


class Machine:
    """As google-auth's credentials of a machine: they know whose they are when they have asked."""

    service_account_email = "default"

    def refresh(self, request: object) -> None:
        self.service_account_email = GATEWAY


def test_persons_login_signs_nothing_and_that_is_said(google, surroundings):
    surroundings(
        json.dumps(
            {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "hush"}
        )
    )

    with pytest.raises(Unsupported, match="not a service account's") as caught:
        find_signer(CHAIN, google.transport)
    assert "hush" not in caught.value.message


def test_nobody_in_the_surroundings_is_unavailable_and_logged_without_words(google, monkeypatch, caplog):
    def nobody(**_: object) -> None:
        raise DefaultCredentialsError("hush")

    monkeypatch.setattr("google.auth.default", nobody)

    with pytest.raises(Unavailable) as caught:
        find_signer(CHAIN, google.transport)
    assert "DefaultCredentialsError" in caplog.text
    assert "hush" not in caplog.text + caught.value.message


def test_refresh_that_is_refused_is_unavailable(surroundings):
    surroundings(
        json.dumps({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"})
    )

    with pytest.raises(Unavailable):
        find_signer(CHAIN, lambda *_, **__: FakeAnswer(403, {"error": "access_denied"}))


async def test_it_looks_once_however_many_ask():
    looked = []

    def find() -> Account:
        looked.append(1)
        return Account(email=GATEWAY)

    signer = ChainSigner(find=find, make=lambda _: FakeSigner())
    await asyncio.gather(*(urls_of(signer, TABLE, "a") for _ in range(10)))

    assert looked == [1]
    assert (signer.cost, signer.has_sessions) == (SigningCost.CALL, False)


async def test_it_looks_again_after_it_found_nobody():
    looked = []

    def find() -> Account:
        looked.append(1)
        if len(looked) == 1:
            raise Unavailable("nobody is there yet")
        return Account(email=GATEWAY)

    signer = ChainSigner(find=find, make=lambda _: FakeSigner())
    with pytest.raises(Unavailable):
        await urls_of(signer, TABLE, "a")

    assert len(await urls_of(signer, TABLE, "a")) == 1


async def test_it_looks_again_after_some_minutes_and_signs_as_whom_it_finds_then():
    now, surroundings, made = [1000.0], [Account(email="a@x"), Account(email="b@x")], []

    def make(found: ServiceKey | Account) -> FakeSigner:
        made.append(found)
        return FakeSigner()

    signer = ChainSigner(find=lambda: surroundings[0], make=make, monotonic=lambda: now[0])
    await urls_of(signer, TABLE, "a")
    del surroundings[0]
    now[0] += 299
    await urls_of(signer, TABLE, "a")
    assert made == [Account(email="a@x")]
    now[0] += 1
    await urls_of(signer, TABLE, "a")

    assert made == [Account(email="a@x"), Account(email="b@x")]


async def test_signer_of_an_account_that_is_found_again_goes_on():
    now, looked, made = [1000.0], [], []

    def find() -> Account:
        looked.append(1)
        return Account(email=GATEWAY)

    def make(found: ServiceKey | Account) -> FakeSigner:
        made.append(found)
        return FakeSigner()

    signer = ChainSigner(find=find, make=make, monotonic=lambda: now[0])
    for _ in range(3):
        await urls_of(signer, TABLE, "a")
        now[0] += 300

    assert (len(looked), len(made)) == (3, 1)
