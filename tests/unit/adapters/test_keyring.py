from __future__ import annotations

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pydantic import SecretStr

from gateway.adapters.keyring import build_keyring, embedded_keys, open_keyring, public_id
from gateway.config.faults import ConfigError
from gateway.config.schema import Config, KeysConfig, ServiceName, ServicesConfig
from gateway.domain.key import Purpose
from tests.cases import each_case

SECRET = "s" * 43
OTHER = "t" * 43
ALL = tuple(ServiceName)
PRIVATE = Ed25519PrivateKey.generate()
OLD = Ed25519PrivateKey.generate()


def private_pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public_pem(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def keyring(run=ALL, previous=None, **current):
    return build_keyring(KeysConfig.model_validate({"current": current, "previous": previous or {}}), run)


def test_one_secret_gives_a_key_for_each_purpose():
    ring = keyring(secret=SECRET)
    secrets = {ring.keys(purpose).current.secret for purpose in Purpose}
    ids = {ring.keys(purpose).current.id for purpose in Purpose}
    assert len(secrets) == len(ids) == len(Purpose)
    assert {len(secret) for secret in secrets} == {32}


def test_derived_keys_never_change():
    # A change here turns away every page token, URL and sealed value that is out in the world.
    key = keyring(secret=SECRET).keys(Purpose.LIST_PAGE).current
    assert key.secret.hex() == "89d12cf7adff8c0c73305bea814d411541544a5c726b0e4ae31b038345818125"
    assert key.id == "s1_SSxXC"


def test_a_key_of_its_own_takes_the_place_of_the_secret():
    both, own = keyring(secret=SECRET, refresh=OTHER), keyring(refresh=OTHER)
    assert both.keys(Purpose.REFRESH) == own.keys(Purpose.REFRESH)
    assert both.keys(Purpose.REFRESH) != keyring(secret=SECRET).keys(Purpose.REFRESH)
    assert both.keys(Purpose.SEALING) == keyring(secret=SECRET).keys(Purpose.SEALING)


def test_an_id_tells_keys_apart_and_can_stand_in_a_url():
    first = keyring(secret=SECRET).keys(Purpose.LOCAL_URL).current
    second = keyring(secret=OTHER).keys(Purpose.LOCAL_URL).current
    assert first.id != second.id
    assert re.fullmatch(r"[A-Za-z0-9_-]{8}", first.id)
    assert first.secret.hex()[:6] not in first.id


def test_the_previous_key_is_known_but_does_not_sign():
    ring = keyring(secret=SECRET, previous={"secret": OTHER})
    keys = ring.keys(Purpose.LIST_PAGE)
    assert keys.current == keyring(secret=SECRET).keys(Purpose.LIST_PAGE).current
    assert keys.previous == keyring(secret=OTHER).keys(Purpose.LIST_PAGE).current


@each_case(
    ("service", "purposes"),
    [
        (ServiceName.EDGE, {Purpose.LOCAL_URL}),
        (ServiceName.CATALOG, {Purpose.LIST_PAGE}),
        (ServiceName.SNAPSHOT, {Purpose.FILE_PAGE, Purpose.REFRESH}),
        (ServiceName.PRESIGN, {Purpose.SEALING, Purpose.LOCAL_URL}),
        (ServiceName.VENDING, {Purpose.SEALING}),
    ],
)
def test_a_process_is_given_the_keys_of_its_purposes_only(service, purposes):
    ring = keyring(run=(service,), secret=SECRET)
    for purpose in Purpose:
        if purpose in purposes:
            assert ring.keys(purpose) == keyring(secret=SECRET).keys(purpose)
        else:
            with pytest.raises(ConfigError, match=f"keys.current.{purpose}: is missing in this process"):
                ring.keys(purpose)


def test_only_the_catalog_is_given_the_private_key():
    ring = keyring(run=(ServiceName.CATALOG,), secret=SECRET, grantPrivateKey=private_pem(PRIVATE))
    key_id, key = ring.grant_private()
    assert key.public_key() == PRIVATE.public_key()
    assert key_id == public_id(PRIVATE.public_key())
    others = tuple(name for name in ServiceName if name != ServiceName.CATALOG)
    ring = keyring(run=others, secret=SECRET, grantPrivateKey=private_pem(PRIVATE))
    with pytest.raises(ConfigError, match=r"keys\.current\.grantPrivateKey: is missing in this process"):
        ring.grant_private()


def test_verifiers_believe_the_current_and_the_previous_key():
    previous = {"grantPublicKey": public_pem(OLD)}
    ring = keyring(run=(ServiceName.VENDING,), previous=previous, grantPublicKey=public_pem(PRIVATE))
    assert ring.grant_public() == {
        public_id(PRIVATE.public_key()): PRIVATE.public_key(),
        public_id(OLD.public_key()): OLD.public_key(),
    }


def test_the_public_key_follows_from_the_private_one():
    previous = {"grantPrivateKey": private_pem(OLD)}
    ring = keyring(secret=SECRET, previous=previous, grantPrivateKey=private_pem(PRIVATE))
    assert set(ring.grant_public()) == {public_id(PRIVATE.public_key()), public_id(OLD.public_key())}
    assert ring.grant_private()[0] in ring.grant_public()


def test_one_process_derives_the_pair_from_its_secret():
    ring = keyring(secret=SECRET, previous={"secret": OTHER})
    key_id, key = ring.grant_private()
    assert ring.grant_public()[key_id] == key.public_key()
    assert set(ring.grant_public()) == {key_id, keyring(secret=OTHER).grant_private()[0]}


def test_several_processes_do_not():
    ring = keyring(run=(ServiceName.CATALOG, ServiceName.SNAPSHOT), secret=SECRET)
    with pytest.raises(ConfigError):
        ring.grant_private()
    assert ring.grant_public() == {}


def test_an_edge_is_given_nothing_about_grants():
    assert (
        keyring(run=(ServiceName.EDGE,), secret=SECRET, grantPublicKey=public_pem(PRIVATE)).grant_public()
        == {}
    )


def test_keys_do_not_print():
    ring = keyring(secret=SECRET)
    assert repr(ring) == "Keyring()"
    assert SECRET not in f"{ring.keys(Purpose.SEALING)} {ring!r}"


def test_embedded_keys_are_made_once_for_their_owner_only(tmp_path):
    directory = tmp_path / "state" / "sluice"
    first = embedded_keys(directory)
    assert embedded_keys(directory) == first
    assert first.current.secret is not None
    assert len(first.current.secret.get_secret_value()) == 43
    (file,) = directory.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert embedded_keys(tmp_path / "another") != first


def test_processes_that_start_at_once_agree_on_their_keys(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        found = set(
            pool.map(lambda _: str(_secret_of(embedded_keys(tmp_path / "state"))), range(64)),
        )
    assert len(found) == 1
    assert len(list((tmp_path / "state").iterdir())) == 1


def _secret_of(keys: KeysConfig) -> str:
    assert keys.current.secret is not None
    return keys.current.secret.get_secret_value()


def test_embedded_keys_that_others_may_read_are_refused(tmp_path):
    embedded_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        embedded_keys(tmp_path)


def test_a_pipe_in_the_place_of_embedded_keys_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "embedded.key", 0o600)
    with pytest.raises(ConfigError, match="damaged"):
        embedded_keys(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 43 + b"\n", b"a" * 43])
def test_damaged_embedded_keys_are_refused(tmp_path, content):
    embedded_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        embedded_keys(tmp_path)


def test_embedded_keys_are_not_read_through_a_link(tmp_path):
    embedded_keys(tmp_path / "a")
    (file,) = (tmp_path / "a").iterdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / file.name).symlink_to(file)
    with pytest.raises(ConfigError, match="cannot be kept"):
        embedded_keys(tmp_path / "b")


def test_a_state_directory_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"set another stateDir, or keys\.current\.secret"):
        embedded_keys(tmp_path / "file" / "below")


def test_one_process_without_keys_opens_the_embedded_ones(tmp_path):
    opened = open_keyring(Config(), tmp_path)
    assert opened.keys(Purpose.SEALING) == build_keyring(embedded_keys(tmp_path), ALL).keys(Purpose.SEALING)


def test_configured_keys_leave_the_state_directory_alone(tmp_path):
    keys = KeysConfig.model_validate({"current": {"secret": SecretStr(SECRET)}})
    opened = open_keyring(Config(keys=keys), tmp_path)
    assert opened.keys(Purpose.SEALING) == keyring(secret=SECRET).keys(Purpose.SEALING)
    assert list(tmp_path.iterdir()) == []


def test_one_of_several_processes_makes_no_keys(tmp_path):
    opened = open_keyring(Config(services=ServicesConfig(run=(ServiceName.VENDING,))), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError):
        opened.keys(Purpose.SEALING)
