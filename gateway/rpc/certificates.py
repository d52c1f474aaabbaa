"""The certificate files of mutual TLS, read again as they are renewed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gateway.config.schema import TlsConfig
from gateway.domain.validity import Validity
from gateway.errors import InvalidArgument
from gateway.ports import Clock, utcnow


@dataclass(frozen=True, slots=True)
class Material:
    """What the files held at one moment, in PEM; certificate and key belong together."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes

    @property
    def validity(self) -> Validity:
        """Return that of the certificate of the chain that ends first."""
        return first_to_end(self.certificate)

    def trusts_all_of(self, other: Material) -> bool:
        """Tell whether every authority of the other is one of these too."""
        own, others = (set(x509.load_pem_x509_certificates(each.authority)) for each in (self, other))
        return others <= own


class Certificates:
    """The material in force: that of the files when they were last found to be sound."""

    def __init__(self, tls: TlsConfig, clock: Clock = utcnow) -> None:
        self._tls = tls
        self._clock = clock
        self.material = read_material(tls)

    def renew(self) -> bool:
        """Take up what the files hold, and tell whether it is new; raise, and change nothing, if unsound."""
        material = read_material(self._tls)
        if material == self.material:
            return False
        self._check_life(material)
        self.material = material
        return True

    def _check_life(self, material: Material) -> None:
        own, *_ = x509.load_pem_x509_certificates(material.certificate)
        if own.not_valid_after_utc <= self._clock():
            raise InvalidArgument(
                f"services.tls: the certificate {self._tls.certificate} has expired already"
            )


def first_to_end(chain: bytes) -> Validity:
    """Return how long the certificate holds that ends first, of a chain in PEM."""
    return min(
        Validity(
            ends_at=certificate.not_valid_after_utc,
            life=certificate.not_valid_after_utc - certificate.not_valid_before_utc,
        )
        for certificate in x509.load_pem_x509_certificates(chain)
    )


def certificate_files(tls: TlsConfig) -> tuple[Path, ...]:
    return Path(tls.certificate), Path(tls.key), Path(tls.ca)


def read_material(tls: TlsConfig) -> Material:
    """Return what the files hold; refuse what grpc would take without a word, to fail at every handshake."""
    try:
        certificate, key = Path(tls.certificate).read_bytes(), Path(tls.key).read_bytes()
        _check_pair(certificate, key)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as exc:
        raise InvalidArgument(
            f"services.tls: the certificate {tls.certificate} cannot be used with the key {tls.key}; "
            "both are PEM, and the key is not encrypted"
        ) from exc
    try:
        authority = Path(tls.ca).read_bytes()
        x509.load_pem_x509_certificates(authority)
    except (OSError, ValueError) as exc:
        raise InvalidArgument(f"services.tls: {tls.ca} holds no certificates in PEM") from exc
    return Material(certificate, key, authority)


def _check_pair(certificate: bytes, key: bytes) -> None:
    own, *_ = x509.load_pem_x509_certificates(certificate)
    private = load_pem_private_key(key, password=None)
    encoding = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if own.public_key().public_bytes(*encoding) != private.public_key().public_bytes(*encoding):
        raise ValueError("the key belongs to another certificate")
