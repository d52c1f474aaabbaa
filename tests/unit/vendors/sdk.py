"""URLs as the SDK signs them, at a moment that a test chooses."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from unittest.mock import patch

import botocore.auth
import botocore.session
from botocore.config import Config

# As long as those of STS, with all that base64 has.
TOKEN = base64.b64encode(random.Random(1).randbytes(760)).decode()
_S3 = {"us_east_1_regional_endpoint": "regional", "addressing_style": "virtual"}


@cache
def sdk_client(
    *, region: str, access_key_id: str, secret: str, token: str = "", endpoint: str = "", **s3: object
) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        region_name=region,
        endpoint_url=endpoint or None,
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret,
        aws_session_token=token or None,
        # Told what its habits would change: the signature, and a host without its region.
        config=Config(signature_version="s3v4", s3=_S3 | s3, ignore_configured_endpoint_urls=True),
    )


def sdk_urls(
    client: Any, bucket: str, keys: Iterable[str], *, signed_at: datetime, life: timedelta
) -> list[str]:
    with frozen(signed_at):
        return [
            client.generate_presigned_url(
                "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=int(life.total_seconds())
            )
            for key in keys
        ]


@contextmanager
def frozen(moment: datetime) -> Iterator[None]:
    """Let the SDK sign as of a moment, which it takes without its time zone."""
    with patch.object(botocore.auth, "get_current_datetime", lambda: moment.replace(tzinfo=None)):
        yield
