from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gateway.config.pem import parse_private_key, parse_public_key, parse_verification_key
from tests.cases import each_case

ED25519 = ed25519.Ed25519PrivateKey.generate()
P256 = ec.generate_private_key(ec.SECP256R1())


def private_pem(key) -> str:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()


def public_pem(key) -> str:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def test_an_ed25519_pair_is_read():
    assert parse_private_key(private_pem(ED25519)).public_key() == ED25519.public_key()
    assert parse_public_key(public_pem(ED25519)) == ED25519.public_key()
    assert parse_verification_key(public_pem(ED25519)) == ED25519.public_key()


def test_an_rsa_key_verifies_if_it_is_long_enough():
    parse_verification_key(public_pem(rsa.generate_private_key(65537, 2048)))
    with pytest.raises(ValueError, match="at least 2048 bits"):
        parse_verification_key(public_pem(rsa.generate_private_key(65537, 1024)))


@each_case(
    "text",
    [
        "",
        "hunter2",
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
        private_pem(P256),
        "\x00é",
    ],
)
def test_what_is_no_private_key_is_refused_without_quoting_it(text):
    with pytest.raises(ValueError, match="must be an Ed25519 private key in PEM") as caught:
        parse_private_key(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_elliptic_key_verifies_on_one_curve():
    parse_verification_key(public_pem(P256))
    with pytest.raises(ValueError, match="P-256"):
        parse_verification_key(public_pem(ec.generate_private_key(ec.SECP384R1())))


@each_case("text", ["", "x", public_pem(P256), private_pem(ED25519)])
def test_what_is_no_grant_key_is_refused(text):
    with pytest.raises(ValueError, match="must be an Ed25519 public key"):
        parse_public_key(text)


@pytest.mark.parametrize("text", ["", "x", private_pem(ED25519)])
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(ValueError, match="must be one public key"):
        parse_verification_key(text)


@pytest.mark.parametrize("more", [public_pem(P256), "and more"], ids=["a second key", "words"])
def test_what_would_be_left_unread_after_a_key_is_refused(more):
    with pytest.raises(ValueError, match="a second one is an entry of its own"):
        parse_verification_key(public_pem(ED25519) + more)
    with pytest.raises(ValueError, match="Ed25519 public key"):
        parse_public_key(public_pem(ED25519) + more)
    with pytest.raises(ValueError, match="Ed25519 private key"):
        parse_private_key(private_pem(ED25519) + more)


def test_blank_lines_after_a_key_and_words_before_it_are_nothing():
    assert parse_verification_key(f"of 2026\n{public_pem(ED25519)}\n \n") == ED25519.public_key()
