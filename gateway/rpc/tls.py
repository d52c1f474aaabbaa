"""Mutual TLS between processes."""

from __future__ import annotations

import grpc

from gateway.rpc.certificates import Certificates, Material


def server_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """Return credentials that admit only peers whose certificate our authority signed.

    Each new connection is shown the material that is in force when it begins.
    """
    shown = certificates.material

    # Called by a thread of grpc's own, at each handshake.
    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        if certificates.material is shown:
            return None
        shown = certificates.material
        return _configuration(shown)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        fetch,  # type: ignore[arg-type]  # None is how grpc spells "as before"
        require_client_authentication=True,
    )


def channel_credentials(material: Material) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=material.authority,
        private_key=material.key,
        certificate_chain=material.certificate,
    )


def _configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], root_certificates=material.authority
    )
