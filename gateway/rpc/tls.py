"""Mutual TLS between processes."""

from __future__ import annotations

from pathlib import Path

import grpc

from gateway.config.schema import TlsConfig


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
    return Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes(), Path(tls.ca).read_bytes()
