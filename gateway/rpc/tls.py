"""Mutual TLS between processes."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from gateway.config.schema import TlsConfig
from gateway.errors import InvalidArgument


def server_credentials(tls: TlsConfig) -> grpc.ServerCredentials:
    """Return credentials that admit only peers whose certificate our authority signed."""
    key, certificate, authority = _read(tls)
    return grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=authority, require_client_auth=True
    )


def channel_credentials(tls: TlsConfig) -> grpc.ChannelCredentials:
    key, certificate, authority = _read(tls)
    return grpc.ssl_channel_credentials(
        root_certificates=authority, private_key=key, certificate_chain=certificate
    )


def _read(tls: TlsConfig) -> tuple[bytes, bytes, bytes]:
    _check(tls)
    return Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes(), Path(tls.ca).read_bytes()


def _check(tls: TlsConfig) -> None:
    """Refuse what grpc would take without a word, only to fail at every handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # With a password, as one would otherwise be asked for on the terminal.
        context.load_cert_chain(tls.certificate, tls.key, password="")
    except (OSError, ValueError) as exc:
        raise InvalidArgument(
            f"services.tls: the certificate {tls.certificate} cannot be used with the key {tls.key}; "
            "both are PEM, and the key is not encrypted"
        ) from exc
    try:
        context.load_verify_locations(tls.ca)
    except OSError as exc:
        raise InvalidArgument(f"services.tls: {tls.ca} holds no certificates in PEM") from exc
