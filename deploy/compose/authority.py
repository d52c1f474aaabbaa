"""A certificate authority for one machine: what the compose file's processes know each other by."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=90)

_BOTH_SIDES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])


@dataclass(frozen=True, slots=True)
class Issued:
    certificate: str
    key: str = field(repr=False)


class Authority:
    """Signs certificates; its own key is forgotten with it, so that nobody can sign more."""

    def __init__(self, name: str = "Sluice on this machine", *, trust_domain: str = "sluice.local") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._trust_domain = trust_domain
        extension = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), LIFE)
            .add_extension(extension, critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> str:
        return self._certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, name: str, hosts: Sequence[str], life: timedelta = LIFE) -> Issued:
        """Return a certificate for ``spiffe://TRUSTDOMAIN/NAME``, which is reached by these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        identity = x509.UniformResourceIdentifier(f"spiffe://{self._trust_domain}/{name}")
        names = x509.SubjectAlternativeName([identity, *map(_host, hosts)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(_name(name), self._name, key.public_key(), life)
            .add_extension(names, critical=False)
            .add_extension(issuer, critical=False)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(_BOTH_SIDES, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Issued(certificate.public_bytes(Encoding.PEM).decode(), pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
