from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from gateway.adapters.certificate import RenewableContext, certificate_files, find_validity, server_context
from gateway.config.schema import SslConfig
from gateway.domain.validity import Validity
from gateway.errors import InvalidArgument
from tests.certificates import new_authority


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "share.internal"])
def test_a_certificate_is_made_at_the_start(host):
    context = server_context(SslConfig(selfSigned=True), host)

    assert context.cert_store_stats()["x509"] == 0
    assert context.minimum_version.name == "TLSv1_2"


def test_an_operators_certificate_is_loaded(tmp_path):
    tls = new_authority(tmp_path).issue("edge")

    server_context(SslConfig(certificateFile=tls.certificate, certificateKeyFile=tls.key), "127.0.0.1")


def test_the_end_of_the_certificate_that_was_loaded_is_told(tmp_path):
    tls = new_authority(tmp_path).issue("edge")
    told: list[Validity] = []
    server_context(
        SslConfig(certificateFile=tls.certificate, certificateKeyFile=tls.key), "127.0.0.1", told.append
    )
    own = x509.load_pem_x509_certificate(Path(tls.certificate).read_bytes())
    start, end = own.not_valid_before_utc, own.not_valid_after_utc
    assert told == [Validity(ends_at=end, life=end - start)]


def test_the_end_of_a_certificate_that_is_made_is_told():
    told: list[Validity] = []
    server_context(SslConfig(selfSigned=True), "127.0.0.1", told.append)
    assert timedelta(days=364) < told[0].ends_at - datetime.now(UTC) < timedelta(days=366)
    assert timedelta(days=365) <= told[0].life < timedelta(days=366)


def test_of_a_chain_the_first_to_end_counts_and_of_no_certificate_nothing(tmp_path):
    tls, chain = new_authority(tmp_path).issue("edge"), tmp_path / "chain.pem"
    ends = [find_validity(Path(file)) for file in (tls.certificate, tls.ca)]
    chain.write_bytes(Path(tls.ca).read_bytes() + Path(tls.certificate).read_bytes())
    assert find_validity(chain) == min(end for end in ends if end is not None)
    assert find_validity(Path(tls.key)) is None


def test_a_certificate_that_does_not_fit_its_key_is_a_clear_error(tmp_path):
    authority = new_authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    settings = SslConfig(certificateFile=one.certificate, certificateKeyFile=other.key)

    with pytest.raises(InvalidArgument, match="cannot be used with its key"):
        server_context(settings, "127.0.0.1")


@pytest.mark.parametrize(
    "password", [None, b"another", b"\xff\xfe", b"x" * 2000], ids=["none", "wrong", "no text", "too long"]
)
def test_an_encrypted_key_without_its_password_is_a_clear_error_and_no_question(tmp_path, password):
    tls = new_authority(tmp_path).issue("edge")
    encrypt(Path(tls.key), b"secret")
    file = tmp_path / "password"
    file.write_bytes(password or b"")
    settings = SslConfig(
        certificateFile=tls.certificate,
        certificateKeyFile=tls.key,
        certificatePasswordFile=str(file) if password else "",
    )

    with pytest.raises(InvalidArgument, match="cannot be used with its key"):
        server_context(settings, "127.0.0.1")


def test_an_encrypted_key_is_opened_with_the_password_in_the_file(tmp_path):
    tls = new_authority(tmp_path).issue("edge")
    encrypt(Path(tls.key), b"secret")
    file = tmp_path / "password"
    file.write_bytes(b"secret\r\n")

    server_context(
        SslConfig(
            certificateFile=tls.certificate, certificateKeyFile=tls.key, certificatePasswordFile=str(file)
        ),
        "127.0.0.1",
    )


def encrypt(file: Path, password: bytes) -> None:
    key = load_pem_private_key(file.read_bytes(), password=None)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password)))


@pytest.fixture
def renewable(tmp_path):
    authority = new_authority(tmp_path)
    tls = authority.issue("edge")
    settings = SslConfig(certificateFile=tls.certificate, certificateKeyFile=tls.key)
    return authority, tls, RenewableContext(settings, "127.0.0.1")


@pytest.mark.parametrize("server_hostname", [None, "localhost"], ids=["without SNI", "with SNI"])
def test_new_connections_are_shown_the_renewed_certificate(renewable, server_hostname):
    authority, tls, context = renewable
    before = shown_certificate(context, server_hostname)
    assert before == own_certificate(tls)

    authority.issue("edge")
    assert shown_certificate(context, server_hostname) == before
    context.renew()

    assert shown_certificate(context, server_hostname) == own_certificate(tls) != before


def test_a_renewed_certificate_that_does_not_fit_its_key_changes_nothing(renewable):
    authority, tls, context = renewable
    before = shown_certificate(context, None)
    Path(tls.certificate).write_bytes(Path(authority.issue("other").certificate).read_bytes())

    with pytest.raises(InvalidArgument, match="cannot be used with its key"):
        context.renew()

    assert shown_certificate(context, None) == before


def test_the_files_of_a_certificate_are_those_that_are_given(tmp_path):
    authority = new_authority(tmp_path)
    tls = authority.issue("edge")

    assert certificate_files(SslConfig(selfSigned=True)) == ()
    both = SslConfig(certificateFile=tls.certificate, certificateKeyFile=tls.key)
    assert certificate_files(both) == (Path(tls.certificate), Path(tls.key))


def own_certificate(tls) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(tls.certificate).read_text())


def shown_certificate(context: RenewableContext, server_hostname: str | None) -> bytes:
    """Shake hands in memory, and return the certificate that the client saw."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there, server_hostname=server_hostname)
    server = context.listening.wrap_bio(there, back, server_side=True)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    certificate = client.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate
