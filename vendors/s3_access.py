"""Reaches a bucket over the S3 protocol: stores for obstore, listings by any prefix of a key, signed URLs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from obstore.store import S3Store

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.domain.location import Location
from gateway.domain.window import Window
from gateway.errors import Unavailable, Unsupported
from gateway.ports import Clock, Sessions
from vendors.boto_identity import BotoEndpoint, BotoIdentity, Keys, OwnSession
from vendors.obstore_client import client_options, retry_config
from vendors.obstore_error import StoreRefused, judge
from vendors.obstore_probe import MOST_NAMES, ObstoreProbe
from vendors.obstore_reader import ObstoreReader
from vendors.obstore_state import ObstoreState
from vendors.s3_address import Place, access_point_url, aws_url, with_label
from vendors.s3_signer import S3Signer
from vendors.s3_spark import S3Reach, S3Spark
from vendors.sent_host import as_sent
from vendors.sts import Failures, translate

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

# obstore asks again five minutes before this is over: a secret that was replaced is noticed within a minute.
_BELIEVED: Final = timedelta(minutes=6)

_LONGEST_RUN: Final = timedelta(hours=12)

# Each waits for the network most of its time: a few slow mints must not hold up the others.
_THREADS: Final = 32

T = TypeVar("T")

log = logging.getLogger(__name__)


@contextmanager
def open_threads(storage: str) -> Iterator[Executor]:
    """Give the threads in which a storage's calls of the SDK wait; more calls wait for their turn."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"storage-{storage}")
    try:
        yield threads
    finally:
        # What is under way ends by its own time-out; nobody waits for it.
        threads.shutdown(wait=False, cancel_futures=True)


class S3Access:
    """Opens one bucket for one storage."""

    def __init__(
        self, bucket: str, endpoint: BotoEndpoint, identity: BotoIdentity, threads: Executor, clock: Clock
    ) -> None:
        self._bucket = bucket
        self._endpoint = endpoint
        self._identity = identity
        self._threads = threads
        self._clock = clock
        self._failures = Failures(log)

    def reader(self) -> ObstoreReader:
        return ObstoreReader(self._open_own)

    def state(self, location: Location, *, lists_in_order: bool = True) -> ObstoreState:
        return ObstoreState(self._open_own, location, lists_in_order=lists_in_order)

    def spark(self) -> S3Spark:
        return S3Spark(self._bucket, lambda: self._run(self._reach))

    def probe(self) -> ObstoreProbe:
        return ObstoreProbe(self._open_own, self._open_with, list_keys=self._list_keys)

    def signer(self, prefix: Location, sessions: Sessions) -> S3Signer:
        has_sessions = self._identity.is_temporary

        async def obtain(window: Window) -> Credential:
            # Keys without an end are not shared: all replicas have them, and nobody else should.
            if has_sessions and await self._knows_end():
                return await sessions.obtain(window, lambda: self._mint(window))
            return _to_credential(await self._run(self._own_keys), window.expires_at)

        return S3Signer(
            prefix=prefix,
            find_place=lambda: self._run(self._place),
            obtain=obtain,
            has_sessions=has_sessions,
        )

    async def _mint(self, window: Window) -> Credential:
        own = await self._run(lambda: self._new_session(window))
        if own.ends_at is None:
            # What is minted is shared, and such keys are not.
            raise Unavailable("the storage's keys have just been replaced; try again")
        return _to_credential(own.keys, own.ends_at)

    async def _knows_end(self) -> bool:
        # A profile may hold other keys by now: those of a role always end.
        return self._identity.is_role or await self._run(self._find_end)

    def _find_end(self) -> bool:
        with self._translated(proves=False):
            return self._identity.has_end()

    def _new_session(self, window: Window) -> OwnSession:
        with self._translated():
            return self._identity.new_session(window.expires_at - window.start)

    async def _open_own(self) -> S3Store:
        # In a thread, as the region may have to be looked for.
        return await self._run(lambda: self._open(self._own_credential))

    def _open_with(self, credential: Credential) -> S3Store:
        keys = _keys(credential)

        async def given() -> S3Credential:
            return _credential(keys, credential.expires_at)

        return self._open(given)

    def _open(self, provider: Callable[[], Coroutine[Any, Any, S3Credential]]) -> S3Store:
        place = self._place()
        with self._translated():
            client = client_options(
                allow_http=place.url.startswith("http://"), ca_file=self._endpoint.ca_file
            )
        # Each is named, as obstore takes from the environment what it is not told.
        config: S3Config = {
            "endpoint": place.url,
            "aws_endpoint_url_s3": place.url,
            "region": place.region,
            "virtual_hosted_style_request": not place.bucket_in_path,
            "skip_signature": False,
            "s3_express": False,
            "request_payer": False,
            "disable_bulk_delete": True,
            "conditional_put": "etag",
        }
        return S3Store(
            self._bucket,
            config=config,
            client_options=client,
            retry_config=retry_config(),
            credential_provider=provider,
        )

    def _place(self) -> Place:
        """Return where the bucket is; the region may have to be looked for."""
        with self._translated():
            region = self._identity.region()
        endpoint = self._endpoint
        dual_stack = endpoint.dual_stack
        if endpoint.access_point:
            url = access_point_url(endpoint.access_point, region, endpoint.s3, dual_stack=dual_stack)
            return Place(url=as_sent(url), region=region)
        url = as_sent(endpoint.s3 or aws_url(region, dual_stack=dual_stack))
        if endpoint.path_style:
            return Place(url=url, bucket_in_path=self._bucket, region=region)
        return Place(url=with_label(url, self._bucket), region=region)

    def _reach(self) -> S3Reach:
        endpoint = self._endpoint
        with self._translated():
            region = self._identity.region()
            # A job may outlast an hour, which is all that a session lasts unless more is asked for.
            keys = None if self._identity.is_found else self._identity.new_session(_LONGEST_RUN).keys
        url = endpoint.s3 or (aws_url(region, dual_stack=True) if endpoint.dual_stack else "")
        reach = S3Reach(
            endpoint=url,
            region=region,
            path_style=endpoint.path_style,
            access_point=endpoint.access_point,
        )
        return reach if keys is None else replace(reach, **asdict(keys))

    async def _own_credential(self) -> S3Credential:
        keys = await self._run(self._own_keys)
        return _credential(keys, self._clock() + _BELIEVED)

    def _own_keys(self) -> Keys:
        with self._translated():
            return self._identity.keys()

    @contextmanager
    def _translated(self, *, proves: bool = True) -> Iterator[None]:
        """Give what goes wrong our own words; what goes right may prove that there is an identity again."""
        try:
            yield
        # The last two: what a provider gave was no credential, or one that is over.
        except (ClientError, BotoCoreError, OSError, ValueError, KeyError, RuntimeError) as exc:
            code, error = translate(exc)
            self._failures.tell(f"the gateway has no identity for the bucket {self._bucket}: {code}", code)
            # Without its cause, which obstore would put into words of its own.
            raise error from None
        if proves:
            self._failures.end()

    async def _list_keys(self, credential: Credential | None, prefix: str) -> Sequence[str]:
        keys = _keys(credential) if credential else await self._run(self._own_keys)
        return await self._run(lambda: self._list(keys, prefix))

    def _list(self, keys: Keys, prefix: str) -> list[str]:
        # With keys that are had already: a refusal here is the store's, and never that of a token service.
        client = self._identity.s3(keys)
        try:
            place = self._endpoint.access_point or self._bucket
            answer = client.list_objects_v2(Bucket=place, Prefix=prefix, MaxKeys=MOST_NAMES)
        except ClientError as exc:
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
            raise StoreRefused(judge(str(status), exc.response.get("Error", {}).get("Code", ""))) from None
        finally:
            client.close()
        return [found["Key"] for found in answer.get("Contents", ())]

    async def _run(self, function: Callable[[], T]) -> T:
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, function)
        except RuntimeError:
            # A reload has closed the storage while somebody was about to ask it.
            raise Unavailable("the storage is being replaced; try again") from None
        return await waiting


def _keys(credential: Credential) -> Keys:
    secret = credential.secret
    if not isinstance(secret, AwsTempCredentials):
        raise Unsupported("this storage takes keys of its own kind only")
    return Keys(
        access_key_id=secret.access_key_id,
        secret_access_key=secret.secret_access_key,
        session_token=secret.session_token,
    )


def _credential(keys: Keys, expires_at: datetime) -> S3Credential:
    return {
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
        "token": keys.session_token or None,
        "expires_at": expires_at,
    }


def _to_credential(keys: Keys, expires_at: datetime) -> Credential:
    secret = AwsTempCredentials(
        access_key_id=keys.access_key_id,
        secret_access_key=keys.secret_access_key,
        session_token=keys.session_token,
    )
    return Credential(id=keys.access_key_id, secret=secret, expires_at=expires_at)
