"""An S3 store as a test sees it: its addresses, its keys, and what puts objects there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

REGION = "us-east-1"
# No retries: a test wants the store's first word.
_CLIENT = Config(
    retries={"max_attempts": 0},
    connect_timeout=30,
    read_timeout=60,
    s3={"addressing_style": "path"},
)
_SIGNATURES = {"s3": "s3v4", "sts": "v4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What signs requests."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class S3Store:
    """A running store; its helpers use the administrator's keys."""

    endpoint: str
    admin: Keys
    region: str = REGION

    def client(self, keys: Keys, service: str = "s3") -> Any:
        """Return a boto3 client that signs with these keys and asks nobody for others."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
            aws_session_token=keys.session_token,
            config=_CLIENT.merge(Config(signature_version=_SIGNATURES[service])),
        )

    @cached_property
    def s3(self) -> Any:
        return self.client(self.admin)

    def make_bucket(self, name: str) -> str:
        """Create a bucket unless it is there, and return its name."""
        if name not in {bucket["Name"] for bucket in self.s3.list_buckets()["Buckets"]}:
            self.s3.create_bucket(Bucket=name)
        return name

    def put(self, bucket: str, key: str, body: bytes = b"content") -> None:
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)

    def get(self, bucket: str, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def can_store(self, buckets: Iterable[str]) -> bool:
        """Say whether the buckets are there and one of them takes an object; make those that are missing."""
        try:
            for bucket in buckets:
                self.make_bucket(bucket)
                self.put(bucket, ".ready")
                self.s3.delete_object(Bucket=bucket, Key=".ready")
        except (BotoCoreError, ClientError):
            return False
        return True


def keys_of(credentials: dict[str, Any]) -> Keys:
    """Return the keys in the ``Credentials`` of an STS answer."""
    return Keys(
        access_key_id=credentials["AccessKeyId"],
        secret_access_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
    )
