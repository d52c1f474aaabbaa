from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.cases import each_case

SECRET = "s" * 32
PRIVATE = Ed25519PrivateKey.generate()
PRIVATE_PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public_pem(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
def missing_in(read_text):
    """Return which keys a process lacks."""

    def find(keys, *run):
        config = {
            "allowAnonymous": True,
            "keys": keys,
            "services": {
                "run": run or ["edge", "catalog", "snapshot", "presign", "vending"],
                "listen": "localhost:1",
                "addresses": dict.fromkeys(("catalog", "snapshot", "presign", "vending"), "localhost:1"),
            },
        }
        faults = read_text(json.dumps(config)).faults
        assert all("is missing" in fault.message for fault in faults)
        return [fault.path.removeprefix("keys.current.") for fault in faults]

    return find


def test_one_process_without_keys_makes_its_own(missing_in):
    assert missing_in({}) == []


def test_one_process_needs_one_secret(missing_in):
    assert missing_in({"current": {"secret": SECRET}}) == []


@pytest.mark.parametrize(
    ("service", "needed"),
    [
        ("edge", ["localUrl"]),
        ("catalog", ["listPage", "grantPrivateKey"]),
        ("snapshot", ["filePage", "refresh", "grantPublicKey"]),
        ("presign", ["sealing", "localUrl", "grantPublicKey"]),
        ("vending", ["sealing", "grantPublicKey"]),
    ],
)
def test_a_process_of_its_own_does_not_start_without_its_keys(missing_in, service, needed):
    assert missing_in({}, service) == needed


@pytest.mark.parametrize(
    ("service", "needed"),
    [
        ("edge", []),
        ("catalog", ["grantPrivateKey"]),
        ("snapshot", ["grantPublicKey"]),
        ("presign", ["grantPublicKey"]),
        ("vending", ["grantPublicKey"]),
    ],
)
def test_a_secret_stands_for_all_purposes_but_not_for_grants_between_processes(missing_in, service, needed):
    assert missing_in({"current": {"secret": SECRET}}, service) == needed


def test_a_public_key_beside_the_secret_needs_its_private_half(missing_in):
    assert missing_in({"current": {"secret": SECRET, "grantPublicKey": public_pem(PRIVATE)}}) == [
        "grantPrivateKey"
    ]


def test_keys_of_their_own_will_do(missing_in):
    keys = {"sealing": SECRET, "localUrl": SECRET, "grantPublicKey": public_pem(PRIVATE)}
    assert missing_in({"current": keys}, "presign") == []
    keys = {"listPage": SECRET, "grantPrivateKey": PRIVATE_PEM}
    assert missing_in({"current": keys}, "catalog") == []


def test_some_keys_in_one_process_need_the_rest(missing_in):
    needed = ["localUrl", "listPage", "filePage", "refresh", "grantPrivateKey"]
    assert missing_in({"current": {"sealing": SECRET}}) == needed


def test_previous_keys_alone_are_not_enough(missing_in):
    assert "localUrl" in missing_in({"previous": {"secret": SECRET}})


@each_case("generation", ["current", "previous"])
@each_case("key", ["secret", "listPage", "filePage", "refresh", "localUrl", "sealing"])
def test_a_short_secret_is_refused_without_showing_it(faults_of, generation, key):
    faults = faults_of(f"keys: {{{generation}: {{{key}: hunter2}}}}")
    fault = faults[f"keys.{generation}.{key}"]
    assert "at least 32 bytes" in fault.message
    assert "hunter2" not in str(faults)


def test_bytes_count_not_characters(faults_of):
    assert not faults_of(f"keys: {{current: {{secret: {'ü' * 16}}}}}")


@pytest.mark.parametrize(
    ("key", "faulty"),
    [("grantPrivateKey", ["grantPrivateKey"]), ("grantPublicKey", ["grantPublicKey", "grantPrivateKey"])],
)
def test_what_is_no_key_is_refused_without_showing_it(faults_of, key, faulty):
    faults = faults_of(f"keys: {{current: {{secret: {SECRET}, {key}: hunter2}}}}")
    assert list(faults) == [f"keys.current.{name}" for name in faulty]
    assert "hunter2" not in str(faults)


def test_a_pair_belongs_together(faults_of):
    keys = {"secret": SECRET, "grantPrivateKey": PRIVATE_PEM, "grantPublicKey": public_pem(PRIVATE)}
    assert not faults_of(f"keys: {json.dumps({'current': keys})}")
    keys["grantPublicKey"] = public_pem(Ed25519PrivateKey.generate())
    faults = faults_of(f"keys: {json.dumps({'current': keys})}")
    assert list(faults) == ["keys.current.grantPublicKey"]
    assert "does not belong to grantPrivateKey" in str(faults)


def test_a_private_key_where_it_is_not_needed_is_a_warning(read_text):
    keys = {"current": {"sealing": SECRET, "grantPrivateKey": PRIVATE_PEM}}
    services = {"run": ["vending"], "listen": "localhost:1"}
    draft = read_text(json.dumps({"keys": keys, "services": services}))
    assert not draft.faults
    assert "keys.current.grantPrivateKey: is for the catalog alone" in draft.warnings[0]
