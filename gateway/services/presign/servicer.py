"""The Presign service: a grant and paths in, signatures out."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from grpc import aio

from gateway.domain.grant import Grant
from gateway.domain.location import Location
from gateway.domain.table import AccessMode
from gateway.domain.window import URL_PARTS, Window, window_at
from gateway.errors import Internal, Unavailable, Unsupported
from gateway.ports import Clock, Signer, Storages
from gateway.rpc.grant import GrantVerifier
from gateway.services.presign.codec import from_paths, to_proto
from gateway.v1 import presign_pb2 as pb
from gateway.v1 import presign_pb2_grpc

# About two milliseconds of checking.
_MOST_IN_PLACE: Final = 256 * 1024


class PresignServicer(presign_pb2_grpc.PresignServicer):
    """Signs files of the grant's locations. All that ask within a window get the same URLs."""

    def __init__(self, *, storages: Storages, verifier: GrantVerifier, clock: Clock, life: timedelta) -> None:
        self._storages = storages
        self._verifier = verifier
        self._clock = clock
        self._life = life

    async def Sign(self, request: pb.SignRequest, context: aio.ServicerContext[Any, Any]) -> pb.SignResponse:
        grant = self._verifier.verify(request.grant)
        grant.require(AccessMode.URL)
        location = grant.location_at(request.location)
        read = partial(from_paths, request.paths, is_segment=request.is_segment)
        paths = await asyncio.to_thread(read) if len(request.paths) > _MOST_IN_PLACE else read()
        now = self._clock()
        storage, signer = self._find(grant, location)
        window = self._window(storage, None if signer.has_sessions else location, now)
        signatures = await signer.sign(location, paths, window)
        # A signature too few would give every file after it the URL of another.
        if len(signatures) != len(paths):
            raise Internal("internal error")
        if signatures.expires_at <= now:
            raise Unavailable("the storage's signatures have expired already; try again later")
        return to_proto(signatures)

    def _find(self, grant: Grant, location: Location) -> tuple[str, Signer]:
        storage = self._storages.find(location)
        if storage is None:
            raise Unsupported(f"table {grant.table} is not on a storage that the gateway is configured for")
        if storage.signer is None:
            raise Unsupported(f"table {grant.table} is on a storage that cannot sign URLs")
        return storage.name, storage.signer

    def _window(self, storage: str, location: Location | None, now: datetime) -> Window:
        key = "\n".join((storage, *(location.identity if location else ())))
        return window_at(now, self._life, URL_PARTS, key.encode())
