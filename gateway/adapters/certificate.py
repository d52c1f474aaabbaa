"""TLS for the REST listener: an operator's certificate, or one that is made at the start."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.config.schema import SslConfig
from gateway.domain.validity import Validity
from gateway.errors import InvalidArgument
from gateway.rpc.certificates import first_to_end

# Told how long the certificates of a listener hold.
NoteValidity = Callable[[Validity], None]

_LIFE: Final = timedelta(days=365)


class RenewableContext:
    """TLS of the REST listener, whose new connections are shown the certificate that is in force."""

    def __init__(self, settings: SslConfig, host: str, note_validity: NoteValidity | None = None) -> None:
        self._settings = settings
        self._host = host
        self._note_validity = note_validity
        # The listener keeps this one; each handshake is sent on to the one that is in force.
        self.listening = self._shown = server_context(settings, host, note_validity)
        self.listening.sni_callback = self._show

    def renew(self) -> None:
        """Take up what the files hold; raise, and change nothing, if that is unsound."""
        self._shown = server_context(self._settings, self._host, self._note_validity)

    def _show(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._shown


def certificate_files(settings: SslConfig) -> tuple[Path, ...]:
    """Return what is read of the disk: nothing, where the certificate is made at the start."""
    names = settings.certificate_file, settings.certificate_key_file, settings.certificate_password_file
    return tuple(Path(name) for name in names if name)


def server_context(
    settings: SslConfig, host: str, note_validity: NoteValidity | None = None
) -> ssl.SSLContext:
    """Return what the listener needs; a self-signed certificate lives as long as the process."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.self_signed:
        validity: Validity | None = _load_self_signed(context, host)
    else:
        validity = _load_files(context, settings)
    if note_validity is not None and validity is not None:
        note_validity(validity)
    return context


def find_validity(file: Path) -> Validity | None:
    """Return how long a chain in PEM holds; None where there is none to be read."""
    try:
        return first_to_end(file.read_bytes())
    except (OSError, ValueError):
        return None


def _load_files(context: ssl.SSLContext, settings: SslConfig) -> Validity | None:
    try:
        context.load_cert_chain(
            settings.certificate_file, settings.certificate_key_file or None, _password(settings)
        )
    except (OSError, ValueError) as exc:
        raise InvalidArgument(
            f"ssl: the certificate {settings.certificate_file} cannot be used with its key and password"
        ) from exc
    return find_validity(Path(settings.certificate_file))


def _password(settings: SslConfig) -> str:
    if not settings.certificate_password_file:
        # Without any, the library would ask for it on the terminal and wait.
        return ""
    return Path(settings.certificate_password_file).read_text(encoding="utf-8").rstrip("\r\n")


def _load_self_signed(context: ssl.SSLContext, host: str) -> Validity:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sluice")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .sign(key, hashes.SHA256())
    )
    # The ssl module reads certificates from files only.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        file.flush()
        context.load_cert_chain(file.name)
    return first_to_end(certificate.public_bytes(serialization.Encoding.PEM))


def _names(host: str) -> list[x509.GeneralName]:
    try:
        own: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        own = x509.DNSName(host)
    return [own, x509.DNSName("localhost")]
