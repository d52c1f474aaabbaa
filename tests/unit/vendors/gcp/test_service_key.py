from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from gateway.errors import Unavailable
from tests.unit.vendors.gcp.signed import GATEWAY, key_file, small_key
from vendors.gcp.service_key import KeyReader, parse_key

ELLIPTIC = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    .decode()
)
LOCKED = (
    small_key()
    .private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    .decode()
)


def test_key_signs_as_its_account():
    key = parse_key(key_file())

    assert key.email == GATEWAY
    small_key().public_key().verify(key.sign(b"text"), b"text", padding.PKCS1v15(), hashes.SHA256())
    assert key.sign(b"text") == key.sign(b"text")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hush",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        json.dumps({"client_email": GATEWAY}),
        json.dumps({"client_email": GATEWAY, "private_key": "hush"}),
        json.dumps({"client_email": GATEWAY, "private_key": 7}),
        json.dumps({"client_email": GATEWAY, "private_key": ELLIPTIC}),
        json.dumps({"client_email": GATEWAY, "private_key": LOCKED}),
        json.dumps({"client_email": ["hush"], "private_key": json.loads(key_file())["private_key"]}),
        key_file().replace("private_key", "private-key"),
    ],
)
def test_anything_else_is_no_key_and_is_not_quoted(text, caplog):
    with pytest.raises(Unavailable) as caught:
        KeyReader(lambda: text).read()

    assert "not a service account's key" in caplog.text
    assert "hush" not in caplog.text + caught.value.message
    assert "PRIVATE" not in caplog.text + caught.value.message
    assert caught.value.__cause__ is None


def test_private_key_shows_in_no_repr():
    assert repr(parse_key(key_file())) == f"ServiceKey(email={GATEWAY!r})"


def test_key_is_parsed_once_as_long_as_its_text_is_the_same(tmp_path):
    file = tmp_path / "key.json"
    file.write_text(key_file())
    reader = KeyReader(file.read_text)

    assert reader.read() is reader.read()


def test_key_that_was_replaced_is_used_from_then_on(tmp_path):
    file = tmp_path / "key.json"
    file.write_text(key_file())
    reader = KeyReader(file.read_text)
    first = reader.read()
    other = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    replace(file, key_file(other))

    other.public_key().verify(reader.read().sign(b"text"), b"text", padding.PKCS1v15(), hashes.SHA256())
    assert reader.read() is not first


def test_key_that_cannot_be_read_is_unavailable_until_it_can(tmp_path, caplog):
    file = tmp_path / "key.json"
    reader = KeyReader(file.read_text)
    with pytest.raises(Unavailable):
        reader.read()
    file.write_text(key_file())

    assert reader.read().email == GATEWAY
    assert f"the file {file} cannot be read" in caplog.text


def test_key_that_is_gone_is_not_used_any_more(tmp_path):
    file = tmp_path / "key.json"
    file.write_text(key_file())
    reader = KeyReader(file.read_text)
    reader.read()
    file.unlink()

    with pytest.raises(Unavailable):
        reader.read()


def replace(file: Path, text: str) -> None:
    """Write as Kubernetes does: the new file takes the place of the old one, whose time it may have."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.replace(file)
