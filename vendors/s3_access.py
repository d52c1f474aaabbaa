"""Reaches a bucket over the S3 protocol: stores for obstore, and listings by any prefix of a key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from obstore.store import S3Store

from gateway.domain.credential import AwsTempCredentials, Credential
from gateway.errors import Unsupported
from gateway.ports import Clock
from vendors.boto_identity import BotoEndpoint, BotoIdentity, Keys
from vendors.obstore_client import client_options, retry_config
from vendors.obstore_error import StoreRefused, judge
from vendors.obstore_probe import MOST_NAMES, ObstoreProbe
from vendors.obstore_reader import ObstoreReader
from vendors.sts import translate

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

# obstore asks again five minutes before this is over: a secret that was replaced is noticed within a minute.
_BELIEVED: Final = timedelta(minutes=6)

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

    def reader(self) -> ObstoreReader:
        return ObstoreReader(self._open_own)

    def probe(self) -> ObstoreProbe:
        return ObstoreProbe(self._open_own, self._open_with, list_keys=self._list_keys)

    async def _open_own(self) -> S3Store:
        # In a thread, as the region may have to be looked for.
        return await self._run(lambda: self._open(self._own_credential))

    def _open_with(self, credential: Credential) -> S3Store:
        keys = _keys(credential)

        async def given() -> S3Credential:
            return _credential(keys, credential.expires_at)

        return self._open(given)

    def _open(self, provider: Callable[[], Coroutine[Any, Any, S3Credential]]) -> S3Store:
        endpoint = self._endpoint
        with self._translated():
            region = self._identity.region()
            base = endpoint.s3 or _aws_url(region)
            client = client_options(allow_http=base.startswith("http://"), ca_file=endpoint.ca_file)
        url = base if endpoint.path_style else _with_bucket(base, self._bucket)
        # Each is named, as obstore takes from the environment what it is not told.
        config: S3Config = {
            "endpoint": url,
            "aws_endpoint_url_s3": url,
            "region": region,
            "virtual_hosted_style_request": not endpoint.path_style,
            "skip_signature": False,
            "s3_express": False,
            "request_payer": False,
            "disable_bulk_delete": True,
        }
        return S3Store(
            self._bucket,
            config=config,
            client_options=client,
            retry_config=retry_config(),
            credential_provider=provider,
        )

    async def _own_credential(self) -> S3Credential:
        keys = await self._run(self._own_keys)
        return _credential(keys, self._clock() + _BELIEVED)

    def _own_keys(self) -> Keys:
        with self._translated():
            return self._identity.keys()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, OSError, ValueError) as exc:
            code, error = translate(exc)
            log.warning("the gateway has no identity for the bucket %s: %s", self._bucket, code)
            # Without its cause, which obstore would put into words of its own.
            raise error from None

    async def _list_keys(self, credential: Credential | None, prefix: str) -> Sequence[str]:
        keys = _keys(credential) if credential else await self._run(self._own_keys)
        return await self._run(lambda: self._list(keys, prefix))

    def _list(self, keys: Keys, prefix: str) -> list[str]:
        # With keys that are had already: a refusal here is the store's, and never that of a token service.
        client = self._identity.s3(keys)
        try:
            answer = client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=MOST_NAMES)
        except ClientError as exc:
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
            raise StoreRefused(judge(str(status), exc.response.get("Error", {}).get("Code", ""))) from None
        finally:
            client.close()
        return [found["Key"] for found in answer.get("Contents", ())]

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


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


def _with_bucket(url: str, bucket: str) -> str:
    scheme, separator, host = url.partition("://")
    return f"{scheme}{separator}{bucket}.{host}"


def _aws_url(region: str) -> str:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://s3.{region}.{suffix}"
