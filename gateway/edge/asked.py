"""What every request for files says, whichever files it asks for."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.edge import capabilities
from gateway.edge.access_mode import negotiate, require_url
from gateway.edge.capabilities import Capabilities
from gateway.edge.exchange import Exchange
from gateway.edge.parameters import file_id_hash_of
from gateway.v1.catalog_pb2 import AUDIENCE_PRESIGN, AUDIENCE_SNAPSHOT, AsyncQuery, ResolveResponse
from gateway.v1.snapshot_pb2 import FileIdHash


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesAsked:
    """A table that may be answered with URLs, and the form that the client wants them in."""

    resolved: ResolveResponse
    client: Capabilities
    # What the answer's capabilities say of access modes.
    access_modes: str
    file_id_hash: FileIdHash.ValueType
    # The same as a word to echo; empty when the client did not ask.
    file_id_word: str

    @property
    def snapshot_grant(self) -> str:
        return self.resolved.grants[0]

    @property
    def presign_grant(self) -> str:
        return self.resolved.grants[1]


async def ask_for_files(exchange: Exchange, query: AsyncQuery | None = None) -> FilesAsked:
    """Resolve the table of the path; refuse one that has no URLs to give."""
    resolved = await exchange.resolve(AUDIENCE_SNAPSHOT, AUDIENCE_PRESIGN, query=query)
    headers = exchange.request.headers
    client = capabilities.parse(headers.getall(capabilities.HEADER, ()))
    access_modes = negotiate(client, resolved.table)
    require_url(resolved.table)
    file_id_hash, word = file_id_hash_of(headers)
    return FilesAsked(
        resolved=resolved,
        client=client,
        access_modes=access_modes,
        file_id_hash=file_id_hash,
        file_id_word=word,
    )
