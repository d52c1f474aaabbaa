"""Channels to services in other processes."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from grpc import aio

from gateway.config.schema import TlsConfig
from gateway.errors import InvalidArgument
from gateway.rpc.certificates import Material, read_material
from gateway.rpc.service_config import DEFAULT_TIMEOUT, service_config_json
from gateway.rpc.tls import channel_credentials

# Of an answer: a page is about 1 MiB, but a table's schema has no limit of its own, and lists are as long as
# their comments.
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.enable_retries", 1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # A replica that comes back is in use a second later, so that the next one may go soon.
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # When a connection ends names are looked up again, but by default not twice within half a minute.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
)


def dial(
    addresses: str | Sequence[str],
    tls: TlsConfig | None,
    timeout: timedelta = DEFAULT_TIMEOUT,
    service: str = "",
) -> aio.Channel:
    """Open a channel that takes turns over all addresses, or over those where the named service serves."""
    return open_channel(addresses, None if tls is None else read_material(tls), timeout, service)


def open_channel(
    addresses: str | Sequence[str], material: Material | None, timeout: timedelta, service: str = ""
) -> aio.Channel:
    """Open a channel with certificates as they are now; without any, in plain text."""
    target, authority = _target((addresses,) if isinstance(addresses, str) else tuple(addresses))
    options: list[tuple[str, Any]] = [*_OPTIONS]
    options.append(("grpc.service_config", service_config_json(timeout, service)))
    if authority:
        options.append(("grpc.default_authority", authority))
    if material is None:
        return aio.insecure_channel(target, options=options)
    return aio.secure_channel(target, channel_credentials(material), options=options)


def _target(addresses: tuple[str, ...]) -> tuple[str, str]:
    """Return one gRPC target for the addresses, and the name to check certificates for where it needs one."""
    if len(addresses) == 1:
        return addresses[0], ""
    hosts = [address.rpartition(":")[0] for address in addresses]
    try:
        versions = {ipaddress.ip_address(host.strip("[]")).version for host in hosts}
    except ValueError:
        raise InvalidArgument(
            "several addresses of one service must be IP addresses with ports; for names use one dns:///name:port"
        ) from None
    if len(versions) > 1:
        raise InvalidArgument("the addresses of one service must not mix IPv4 and IPv6")
    return f"ipv{versions.pop()}:{','.join(addresses)}", hosts[0]
