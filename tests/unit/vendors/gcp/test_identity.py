from __future__ import annotations

import asyncio
import json
import ssl
from datetime import timedelta
from urllib.parse import parse_qs

import jwt
import pytest

from gateway.errors import Unavailable
from tests.background import finish_background
from tests.certificates import new_authority
from tests.unit.vendors.gcp.google import NOON, SHARER, FakeGoogle, key_text, options
from vendors.gcp.config import parse
from vendors.gcp.identity import Identity, open_transport

HOUR = timedelta(hours=1)


@pytest.fixture
def google():
    return FakeGoogle()


@pytest.fixture
def identity(google):
    return Identity(options(), google.transport, google.clock)


async def test_token_is_kept_while_it_is_fresh(google, identity):
    first = await identity.token()
    google.now += timedelta(minutes=6)

    assert await identity.token() is first
    await finish_background()
    assert first.value == "source-1"
    assert first.expires_at == NOON + HOUR
    assert "source-1" not in repr(first)


async def test_token_is_refreshed_long_before_its_end(google, identity):
    await identity.token()
    google.now += timedelta(minutes=7)

    assert (await identity.token()).value == "source-2"


async def test_token_in_hand_is_used_while_the_next_one_is_fetched(google, identity):
    first = await identity.token()
    google.now += timedelta(minutes=4)
    google.gate.clear()
    # It could not return if it waited for Google, which does not answer yet.
    assert await identity.token() is first
    google.gate.set()
    await finish_background()

    assert (await identity.token()).value == "source-2"


async def test_many_callers_make_one_call(google, identity):
    google.gate.clear()
    waiting = [asyncio.create_task(identity.token()) for _ in range(20)]
    await asyncio.sleep(0)
    google.gate.set()

    assert {token.value for token in await asyncio.gather(*waiting)} == {"source-1"}


async def test_caller_that_gives_up_leaves_the_call_to_the_others(google, identity):
    google.gate.clear()
    first, second = asyncio.create_task(identity.token()), asyncio.create_task(identity.token())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    google.gate.set()

    assert (await second).value == "source-1"
    assert first.cancelled()


async def test_failed_refresh_is_unavailable_and_not_remembered(google, identity, caplog):
    google.is_down = True
    with pytest.raises(Unavailable) as caught:
        await identity.token()
    google.is_down = False

    assert (await identity.token()).value == "source-1"
    assert "RefreshError access_denied" in caplog.text
    assert "secret-in-the-words" not in caplog.text + caught.value.message


async def test_old_token_is_used_while_a_refresh_fails(google, identity):
    old = await identity.token()
    google.is_down = True
    google.now += timedelta(minutes=54)

    assert await identity.token() is old


async def test_old_token_is_not_used_in_its_last_minutes(google, identity):
    await identity.token()
    google.is_down = True
    google.now += timedelta(minutes=56)

    with pytest.raises(Unavailable):
        await identity.token()


async def test_end_is_counted_from_before_the_call(google):
    google.takes = timedelta(seconds=20)
    identity = Identity(options(), google.transport, google.clock)

    token = await identity.token()

    # Two calls of twenty seconds: Google names an end an hour after the second.
    assert token.expires_at == NOON + HOUR


@pytest.mark.parametrize(("life", "asked"), [(timedelta(minutes=15), "900s"), (HOUR * 5, "3600s")])
async def test_impersonation_is_asked_for_the_life_up_to_an_hour(google, identity, life, asked):
    await identity.token(life)

    url, body = google.asked[-1]
    assert url == (
        f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{SHARER}:generateAccessToken"
    )
    assert json.loads(body)["lifetime"] == asked


async def test_lives_are_held_apart(google, identity):
    short = await identity.token(timedelta(minutes=15))
    long = await identity.token()

    assert short.expires_at == NOON + timedelta(minutes=15)
    assert long.expires_at == NOON + HOUR
    assert await identity.token(timedelta(minutes=15)) is short


async def test_delegates_and_address_of_the_impersonation_are_the_settings(google):
    impersonate = {"serviceAccount": SHARER, "delegates": ["middle@p.iam.gserviceaccount.com"]}
    chosen = parse(
        {
            "identity": {"kind": "serviceAccount", "key": {"value": key_text()}, "impersonate": impersonate},
            "iamEndpoint": "https://iam.private.example/",
        }
    )

    await Identity(chosen, google.transport, google.clock).token()

    url, body = google.asked[-1]
    assert url.startswith("https://iam.private.example/v1/projects/-/serviceAccounts/sharer@")
    assert json.loads(body)["delegates"] == ["middle@p.iam.gserviceaccount.com"]


async def test_service_account_asks_for_the_scope_that_the_exchange_needs(google):
    chosen = parse({"identity": {"kind": "serviceAccount", "key": {"value": key_text()}}})

    token = await Identity(chosen, google.transport, google.clock).token(timedelta(minutes=15))

    (asked,) = google.asked
    assertion = parse_qs(asked[1].decode())["assertion"][0]
    claims = jwt.decode(assertion, options={"verify_signature": False})
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert claims["iss"] == "gateway@project.iam.gserviceaccount.com"
    assert token.value == "base"


async def test_key_file_is_read_again(google, tmp_path):
    file = tmp_path / "key.json"
    chosen = parse({"identity": {"kind": "serviceAccount", "keyFile": str(file)}})
    identity = Identity(chosen, google.transport, google.clock)
    with pytest.raises(Unavailable):
        await identity.token()
    file.write_text("[]")
    with pytest.raises(Unavailable):
        await identity.token()
    file.write_text(key_text())

    assert (await identity.token()).value == "base"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", json.dumps({"type": "service_account"})])
async def test_workload_identity_takes_external_accounts_only(google, tmp_path, content):
    file = tmp_path / "config.json"
    file.write_text(content or key_text())
    chosen = parse({"identity": {"kind": "workloadIdentity", "configFile": str(file)}})

    with pytest.raises(Unavailable):
        await Identity(chosen, google.transport, google.clock).token()
    assert google.asked == []


async def test_workload_identity_exchanges_the_file_that_its_config_names(google, tmp_path):
    subject = tmp_path / "token"
    subject.write_text("subject-token")
    file = tmp_path / "config.json"
    file.write_text(
        json.dumps(
            {
                "type": "external_account",
                "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": "https://sts.googleapis.com/v1/token",
                "credential_source": {"file": str(subject)},
            }
        )
    )
    chosen = parse({"identity": {"kind": "workloadIdentity", "configFile": str(file)}})

    token = await Identity(chosen, google.transport, google.clock).token()

    assert token.value == "base"
    assert b"subject-token" in google.asked[-1][1]


async def test_chain_takes_the_credentials_that_the_environment_names(google, tmp_path, monkeypatch):
    file = tmp_path / "key.json"
    file.write_text(key_text())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    assert (await Identity(parse({}), google.transport, google.clock).token()).value == "base"


async def test_other_kinds_do_not_look_at_the_environment(google, tmp_path, monkeypatch):
    file = tmp_path / "key.json"
    file.write_text(key_text())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    chosen = parse({"identity": {"kind": "serviceAccount", "keyFile": str(tmp_path / "none.json")}})

    with pytest.raises(Unavailable):
        await Identity(chosen, google.transport, google.clock).token()
    assert google.asked == []


def test_transport_takes_no_identity_from_a_netrc_file():
    with open_transport(None) as transport:
        session = transport.func.session  # type: ignore[attr-defined]

        assert not session.trust_env
        assert session.verify is True


def test_transport_trusts_the_settings_authority_besides_others(tmp_path):
    authority = new_authority(tmp_path)
    with open_transport(str(authority.ca)) as transport:
        adapter = transport.func.session.get_adapter("https://sts.example")  # type: ignore[attr-defined]
        trusted = adapter.poolmanager.connection_pool_kw["ssl_context"].get_ca_certs(binary_form=True)

    assert ssl.PEM_cert_to_DER_cert(authority.ca.read_text()) in trusted
