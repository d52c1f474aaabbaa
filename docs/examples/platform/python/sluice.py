"""How a platform service reaches Sluice: channels that prove who it is, and calls that wait when told to."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc
import jwt

from gateway.v1 import catalog_pb2, catalog_pb2_grpc

Answer = TypeVar("Answer")

# Retries, balancing and default deadlines, as the services expect them of their callers.
SERVICE_CONFIG = Path(__file__).parents[1] / "service-config.json"
OPTIONS = (
    ("grpc.service_config", SERVICE_CONFIG.read_text()),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
)
# In seconds; the service config's own for calls is 30.
CALL_TIMEOUT = 10
STREAM_TIMEOUT = 600
_TOKEN_LIFE = 300


@dataclass(frozen=True)
class Identity:
    """A certificate; and for a service that proves itself by JWTs, its name and the key that signs them."""

    certificate: Path
    key: Path
    ca: Path
    service: str = ""
    service_key: Path | None = None

    def channel(self, address: str) -> grpc.Channel:
        """Open a channel; ``dns:///name:port`` takes turns over all replicas behind a name."""
        return grpc.secure_channel(address, self._credentials(), OPTIONS)

    def _credentials(self) -> grpc.ChannelCredentials:
        tls = grpc.ssl_channel_credentials(
            self.ca.read_bytes(), self.key.read_bytes(), self.certificate.read_bytes()
        )
        if self.service_key is None:
            return tls
        tokens = TokenSource(self.service, self.service_key.read_text())
        return grpc.composite_channel_credentials(tls, grpc.metadata_call_credentials(tokens))


class TokenSource(grpc.AuthMetadataPlugin):
    """Sends a JWT with every call, for the service that it calls; signs a new one before the old one ends."""

    def __init__(self, service: str, private_key: str) -> None:
        self._service = service
        self._private_key = private_key
        self._tokens: dict[str, tuple[str, float]] = {}

    def __call__(self, context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
        # https://catalog:9400/gateway.v1.Catalog: what one service is sent is of no use at another.
        audience = context.service_url.rpartition("/")[2]
        token, renew_at = self._tokens.get(audience, ("", 0.0))
        now = time.time()
        if now >= renew_at:
            claims = {"sub": self._service, "aud": audience, "iat": int(now), "exp": int(now) + _TOKEN_LIFE}
            token = jwt.encode(claims, self._private_key, algorithm="EdDSA")
            self._tokens[audience] = token, now + _TOKEN_LIFE / 2
        callback((("authorization", f"Bearer {token}"),), None)


class Grant:
    """The right to use one table in one service, renewed before it ends, after a minute at most."""

    def __init__(
        self, catalog: grpc.Channel, table: str, audience: catalog_pb2.Audience.ValueType, recipient: str = ""
    ) -> None:
        self._stub = catalog_pb2_grpc.CatalogStub(catalog)
        share, schema, name = table.split(".")
        self._request = catalog_pb2.ResolveRequest(
            share=share, schema=schema, table=name, audiences=[audience]
        )
        if recipient:
            # Takes the permission actForRecipients; left out, the service asks for itself.
            self._request.caller.recipient = recipient
        self._token, self._renew_at = "", 0.0

    @property
    def token(self) -> str:
        """Return what to put into a request."""
        if time.time() >= self._renew_at:
            resolved = patiently(lambda: self._stub.Resolve(self._request, timeout=CALL_TIMEOUT))
            self._token, self._renew_at = resolved.grants[0], resolved.expires_at_ms / 1000 - 10
        return self._token


def patiently(call: Callable[[], Answer], attempts: int = 5) -> Answer:
    """Make a call again whenever the answer says how long to wait; what else goes wrong is the caller's."""
    for _ in range(attempts - 1):
        try:
            return call()
        except grpc.RpcError as error:
            wait = dict(error.trailing_metadata() or ()).get("sluice-retry-after-ms")
            if wait is None:
                raise
            time.sleep(int(wait) / 1000)
    return call()


def explain(error: grpc.RpcError) -> str:
    """Return what went wrong, in words; programs go by the status and the code."""
    code = dict(error.trailing_metadata() or ()).get("sluice-error-code")
    if code is None:
        return f"the service was not reached: {error.code().name}"
    return f"{error.code().name} ({code}): {error.details()}"


def parse_arguments(*services: str) -> argparse.Namespace:
    """Read the command line: where the services are, and who asks."""
    parser = argparse.ArgumentParser()
    for service in services:
        parser.add_argument(f"--{service}", required=True, metavar="ADDRESS")
    for file in ("certificate", "key", "ca"):
        parser.add_argument(f"--{file}", required=True, type=Path)
    parser.add_argument(
        "--service", default="", help="the name of this service, where it proves itself by JWTs"
    )
    parser.add_argument("--service-key", type=Path, help="the Ed25519 key that signs them, in PEM")
    parser.add_argument("--recipient", default="", help="act for a recipient")
    parser.add_argument("table", help="share.schema.table")
    return parser.parse_args()


def identity_of(arguments: argparse.Namespace) -> Identity:
    return Identity(
        arguments.certificate, arguments.key, arguments.ca, arguments.service, arguments.service_key
    )
