"""Who is at the other end of a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from gateway.rpc.local import LOCAL_PEER
from gateway.rpc.metadata import find_metadata

_BEARER: Final = "bearer "
_TLS: Final = b"ssl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A caller, as far as the transport vouches for it."""

    # The same process.
    local: bool
    # By mutual TLS: our authority signed its certificate, whatever names that has.
    certified: bool = False
    # Subject alternative names and common name of a client certificate that our authority signed.
    certificate_names: tuple[str, ...] = ()
    # A JWT that the caller sent along, unverified.
    bearer: str = field(default="", repr=False)


def peer_of(context: Any) -> Peer:
    if context.peer() == LOCAL_PEER:
        return _SAME_PROCESS
    authorization = find_metadata(context, "authorization")
    bearer = authorization[len(_BEARER) :] if authorization.lower().startswith(_BEARER) else ""
    auth_context = context.auth_context()
    return Peer(
        local=False,
        certified=_TLS in auth_context.get("transport_security_type", ()),
        certificate_names=_certificate_names(auth_context),
        bearer=bearer,
    )


# It needs no other proof than being here.
_SAME_PROCESS: Final = Peer(local=True)


def _certificate_names(auth_context: Any) -> tuple[str, ...]:
    names = (
        *auth_context.get("x509_subject_alternative_name", ()),
        *auth_context.get("x509_common_name", ()),
    )
    return tuple(name.decode(errors="replace") for name in names)
