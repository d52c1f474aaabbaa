"""The demo's S3 store: it starts, enforces what its role says, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import astuple
from itertools import chain
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

from gateway.demo.embedded_s3 import REGION, EmbeddedS3, free_ports, starting_s3
from gateway.demo.s3_access import BUCKET, ROLE_ARN
from gateway.demo.s3_start import sample_on_s3
from gateway.demo.sample import SampleCatalog
from tests.components import SEAWEEDFS
from tests.stores.process import listens
from tests.waiting import eventually

# Starts a store, says on which port it is, and waits to be killed.
HOLDER = """\
import sys, time
from pathlib import Path
from gateway.demo.embedded_s3 import starting_s3
with starting_s3(Path(sys.argv[1])) as starting:
    print(starting.wait().endpoint, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def starting(tmp_path_factory):
    with starting_s3(tmp_path_factory.mktemp("embedded") / "s3") as starting:
        yield starting


@pytest.fixture(scope="module")
def store(starting):
    return starting.wait()


def gateway_client(store: EmbeddedS3, service: str):
    return boto3.client(
        service,
        endpoint_url=store.endpoint,
        region_name=REGION,
        aws_access_key_id=store.gateway.access_key_id,
        aws_secret_access_key=store.gateway.secret_access_key,
    )


@pytest.mark.component(SEAWEEDFS)
def test_files_are_stored_below_their_prefix(store, tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("log")
    (tmp_path / "part-0").write_text("rows")

    store.upload(tmp_path, "a/table")

    found = store.client.list_objects_v2(Bucket=BUCKET, Prefix="a/table/")["Contents"]
    assert [entry["Key"] for entry in found] == ["a/table/_delta_log/0.json", "a/table/part-0"]


@pytest.mark.component(SEAWEEDFS)
def test_gateway_may_assume_the_role_and_read_but_neither_write_nor_list(store, tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("log")
    (tmp_path / "part-0").write_text("rows")
    store.upload(tmp_path, "b/table")
    s3 = gateway_client(store, "s3")

    assumed = gateway_client(store, "sts").assume_role(RoleArn=ROLE_ARN, RoleSessionName="test")
    assert assumed["Credentials"]["SessionToken"]
    assert s3.get_object(Bucket=BUCKET, Key="b/table/_delta_log/0.json")["Body"].read() == b"log"
    assert s3.get_object(Bucket=BUCKET, Key="b/table/part-0")["Body"].read() == b"rows"
    for attempt in (
        lambda: s3.put_object(Bucket=BUCKET, Key="b/table/_delta_log/1.json", Body=b""),
        lambda: s3.list_objects_v2(Bucket=BUCKET),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            attempt()


@pytest.mark.component(SEAWEEDFS)
def test_store_ends_when_its_owner_is_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "s3")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        port = int(holder.stdout.readline().rpartition(":")[2])
        assert listens(port)
        os.kill(holder.pid, signal.SIGKILL)

    eventually(lambda: not listens(port))


@pytest.mark.component(SEAWEEDFS)
@pytest.mark.usefixtures("store")
def test_store_keeps_nothing_outside_its_directory(starting):
    # Where the program puts its sockets unless it is kept from it.
    sockets = [Path("/tmp").glob(f"seaweedfs-*-{port}.sock") for port in astuple(starting.ports)]
    assert not list(chain.from_iterable(sockets))


@pytest.mark.component(SEAWEEDFS)
def test_two_stores_leave_each_other_alone_and_what_a_killed_one_left_is_removed(tmp_path):
    left = tmp_path / "s3" / "left"
    left.mkdir(parents=True)
    (left / ".lock").touch()

    with starting_s3(tmp_path / "s3") as first:
        one = first.wait()
        with starting_s3(tmp_path / "s3") as second:
            assert second.wait().endpoint != one.endpoint
        one.client.put_object(Bucket=BUCKET, Key="still-here", Body=b"")
        assert not left.exists()
    assert [path.name for path in (tmp_path / "s3").iterdir()] == [".lock"]


def test_store_that_ends_at_once_is_told_of_and_the_sample_is_served_alone(tmp_path):
    program = tmp_path / "weed"
    program.write_text("#!/bin/sh\necho no room left >&2\nexit 1\n")
    program.chmod(0o755)
    said: list[str] = []
    sample = SampleCatalog(directory=Path("/sample"))

    with sample_on_s3(tmp_path / "s3", lambda: sample, said.append, str(tmp_path)) as found:
        assert found == (sample, None)

    assert said[-1].startswith("going on without S3 and dir access: it ended by itself: no room left")


def test_ports_lie_above_those_of_tests_and_below_the_ephemeral_ones():
    ports = free_ports(8)
    assert len(set(ports)) == 8
    assert all(22_768 <= port < 32_768 for port in ports)
