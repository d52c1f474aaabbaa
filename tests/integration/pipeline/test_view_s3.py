"""Views on S3: sources that are read by credentials of one directory, results in another bucket."""

from __future__ import annotations

import json
import secrets

import pytest

from gateway.domain.location import parse_location
from pipeline.access import Access
from pipeline.faults import fault_of
from pipeline.jobs import view
from pipeline.progress import ignore
from tests.components import SEAWEEDFS, SPARK_PIPELINE
from tests.spark import SETTINGS, rows_of
from tests.stores.s3 import keys_of
from vendors.iam_policy import PolicyTerms, session_policy

pytestmark = [pytest.mark.component(SPARK_PIPELINE), pytest.mark.component(SEAWEEDFS)]

SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"


@pytest.fixture
def places(seaweedfs):
    """A directory of the lake, its neighbour, and a bucket for views."""
    name = secrets.token_hex(4)
    seaweedfs.make_bucket("views")
    return f"s3a://lake/{name}/orders", f"s3a://lake/{name}/orders-2", f"s3a://views/{name}"


def settings(store, bucket, keys):
    own = {
        "access.key": keys.access_key_id,
        "secret.key": keys.secret_access_key,
        "aws.credentials.provider": TEMPORARY if keys.session_token else SIMPLE,
        "endpoint": store.endpoint,
        "endpoint.region": store.region,
        "path.style.access": "true",
    }
    if keys.session_token:
        own["session.token"] = keys.session_token
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items()}


def vended(store, place):
    """Return keys that read and list one directory, and nothing else."""
    policy = session_policy(parse_location(place.replace("s3a:", "s3:")), PolicyTerms())
    return keys_of(store.assume_role(policy))


def plan(source, root, attempt, current=None):
    return {
        "query": "SELECT id, name FROM source_0 WHERE id > 1",
        "sources": [{"name": "s.s.orders", "url": source}],
        "parameters": {},
        "appendable": True,
        "root_url": root,
        "current": current,
        "fresh_name": f"attempt-{attempt}",
        "app_id": "fingerprint",
        "delete": [],
    }


def insert(session, place, first):
    frame = session.range(first, first + 2).selectExpr("id", "string(id) AS name")
    frame.write.format("delta").mode("append").save(place)


def test_a_view_reads_by_a_vended_credential_and_writes_by_the_stores_own(spark, seaweedfs, places):
    orders, neighbour, root = places
    access = Access(spark, SETTINGS)
    own = settings(seaweedfs, "lake", seaweedfs.admin) | settings(seaweedfs, "views", seaweedfs.admin)
    provider = access.session_with(own)
    for place in (orders, neighbour):
        insert(provider, place, 1)
    scoped = own | settings(seaweedfs, "lake", vended(seaweedfs, orders))
    result = view.run(access.session_with(scoped), plan(orders, root, 1), ignore)
    assert (result["kind"], result["rows"]) == ("full", 1)

    # What was opened before by other keys is not used again.
    with pytest.raises(Exception, match=r"403|AccessDenied") as caught:
        view.run(access.session_with(scoped), plan(neighbour, root, 2), ignore)
    fault = fault_of(caught.value)
    assert (fault.message, fault.retry) == ("the storage refused access", True)

    insert(access.session_with(own), orders, 3)
    renewed = own | settings(seaweedfs, "lake", vended(seaweedfs, orders))
    current = {name: result[name] for name in ("name", "version", "sources")}
    result = view.run(access.session_with(renewed), plan(orders, root, 3, current), ignore)
    assert (result["kind"], result["rows"]) == ("append", 3)
    session = access.session_with(own)
    assert rows_of(session, f"{root}/attempt-1") == [(2, "2"), (3, "3"), (4, "4")]
    prefix = root.removeprefix("s3a://views/")
    assert {key.split("/")[1] for key in seaweedfs.keys("views", prefix)} == {"attempt-1"}
    held = b"".join(seaweedfs.get("views", key) for key in seaweedfs.keys("views", prefix))
    assert seaweedfs.admin.secret_access_key.encode() not in held
    assert json.dumps(orders).strip('"').encode() not in held
