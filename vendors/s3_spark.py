"""How Spark reaches a bucket through Hadoop's S3A, as the storage's own identity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.location import Location

_PROVIDERS: Final = "org.apache.hadoop.fs.s3a"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Reach:
    """Where a bucket is, and whose keys open it."""

    # Empty: where AWS has the region's.
    endpoint: str = ""
    region: str
    path_style: bool
    access_point: str = ""
    # None where the cluster finds its own, as the gateway does.
    access_key_id: str | None = None
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


class S3Spark:
    """Is the port ``SparkAccess``. Its settings are of one bucket, and change nothing for another."""

    def __init__(self, bucket: str, find: Callable[[], Awaitable[S3Reach]]) -> None:
        self._bucket = bucket
        self._find = find

    async def settings(self) -> Mapping[str, str]:
        reach = await self._find()
        found = {
            "endpoint.region": reach.region,
            "path.style.access": _word(reach.path_style),
            **_endpoint(reach),
            **_keys(reach),
        }
        return {f"fs.s3a.bucket.{self._bucket}.{name}": value for name, value in found.items()}

    def url(self, location: Location) -> str:
        # Hadoop takes the path of such a text as it is: what is encoded in it is part of a name.
        return f"s3a://{location.authority}/{location.path}"


def _endpoint(reach: S3Reach) -> dict[str, str]:
    if reach.access_point:
        return {"accesspoint.arn": reach.access_point}
    if not reach.endpoint:
        return {}
    return {
        "endpoint": reach.endpoint,
        "connection.ssl.enabled": _word(reach.endpoint.startswith("https://")),
    }


def _keys(reach: S3Reach) -> dict[str, str]:
    if reach.access_key_id is None:
        return {}
    keys = {"access.key": reach.access_key_id, "secret.key": reach.secret_access_key}
    if not reach.session_token:
        return {**keys, "aws.credentials.provider": f"{_PROVIDERS}.SimpleAWSCredentialsProvider"}
    return {
        **keys,
        "session.token": reach.session_token,
        "aws.credentials.provider": f"{_PROVIDERS}.TemporaryAWSCredentialsProvider",
    }


def _word(is_so: bool) -> str:  # noqa: FBT001 -- the word for it is all that it is
    return "true" if is_so else "false"
