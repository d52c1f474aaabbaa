"""Puts sample tables into a store, again until it takes them: ``upload.py ENDPOINT FOLDER``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET: Final = "lake"
SECRETS: Final = Path("/run/secrets")
PATIENCE: Final = 120.0
PAUSE: Final = 1.0


def main() -> int:
    endpoint, folder = sys.argv[1], Path(sys.argv[2])
    client = _client(endpoint)
    deadline = time.monotonic() + PATIENCE
    # A store answers before it can store.
    while fault := _upload(client, folder):
        if time.monotonic() > deadline:
            sys.stderr.write(f"upload: {endpoint} does not take the sample: {fault}\n")
            return 1
        time.sleep(PAUSE)
    sys.stdout.write(f"upload: {BUCKET} has the sample\n")
    return 0


def _upload(client: Any, folder: Path) -> str | None:
    try:
        if BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=BUCKET)
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                key = file.relative_to(folder).as_posix()
                client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
    except (BotoCoreError, ClientError) as exc:
        return str(exc)
    return None


def _client(endpoint: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=(SECRETS / "store-id").read_text(),
        aws_secret_access_key=(SECRETS / "store-secret").read_text(),
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
    )


if __name__ == "__main__":
    sys.exit(main())
