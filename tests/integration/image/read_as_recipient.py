"""Runs in the official client's environment: reads a shared table by url and by dir, and says what it got."""

# The type checker runs in another environment than this file does.
# mypy: disable-error-code="import-not-found, import-untyped, no-any-return"

from __future__ import annotations

import json
import sys
from pathlib import Path

import boto3
import delta_sharing
import requests
from botocore.exceptions import ClientError
from deltalake import DeltaTable

TABLE = "sample.lake.orders"
PLACE, NEIGHBOUR = "sales/orders", "sales/orders_archive"


def main(profile: Path) -> None:
    by_url = delta_sharing.load_as_pandas(f"{profile}#{TABLE}")
    answer = _credential(json.loads(profile.read_text()))
    keys = answer["credentials"]["awsTempCredentials"]
    storage = {
        "AWS_ACCESS_KEY_ID": keys["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["secretAccessKey"],
        "AWS_SESSION_TOKEN": keys["sessionToken"],
        "AWS_REGION": keys["region"],
        "AWS_ENDPOINT_URL": keys["endpoint"],
        "AWS_ALLOW_HTTP": "true",
    }
    by_dir = DeltaTable(answer["credentials"]["location"], storage_options=storage).to_pandas()
    columns = sorted(by_url.columns)
    same = _rows(by_url, columns) == _rows(by_dir, columns)
    seen = {"url": len(by_url), "dir": len(by_dir), "same": same, "outside": _outside(keys)}
    sys.stdout.write(json.dumps(seen) + "\n")


def _rows(frame: object, columns: list[str]) -> list[str]:
    return sorted(frame[columns].astype(str).agg("|".join, axis=1))  # type: ignore[index]


def _credential(profile: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    share, schema, table = TABLE.split(".")
    url = f"{profile['endpoint']}/shares/{share}/schemas/{schema}/tables/{table}/temporary-table-credentials"
    headers = {"Authorization": f"Bearer {profile['bearerToken']}"}
    answer = requests.post(url, headers=headers, json={}, timeout=60)
    answer.raise_for_status()
    return answer.json()


def _outside(keys: dict[str, str]) -> str:
    """Return how the store refuses the neighbour, whose name begins like the table's."""
    client = boto3.client(
        "s3",
        endpoint_url=keys["endpoint"],
        region_name=keys["region"],
        aws_access_key_id=keys["accessKeyId"],
        aws_secret_access_key=keys["secretAccessKey"],
        aws_session_token=keys["sessionToken"],
    )
    client.get_object(Bucket="lake", Key=f"{PLACE}/_delta_log/00000000000000000000.json")
    try:
        client.get_object(Bucket="lake", Key=f"{NEIGHBOUR}/_delta_log/00000000000000000000.json")
    except ClientError as exc:
        return str(exc.response["Error"]["Code"])
    return "read"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
