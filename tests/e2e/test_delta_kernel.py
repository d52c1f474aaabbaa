"""The protocol's Delta Kernel example, as it is written there, with keys that the gateway vended."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import ALL_IN_ONE, DELTA_KERNEL, SEAWEEDFS
from tests.e2e.official_client import PYTHON, require_environment
from tests.e2e.recipient_gateway import Shared, sharing_gateway
from tests.e2e.recipient_jars import spark_jars
from tests.e2e.recipient_lake import ARCHIVE, IDS, LOCATIONS, ORDERS, RETURNS, SHARE, upload

# Java and Maven come from apt.
pytestmark = [pytest.mark.component(DELTA_KERNEL, SEAWEEDFS, ALL_IN_ONE), pytest.mark.system]

PROGRAM = Path(__file__).parent / "kernel" / "ReadTable.java"
# A JVM that lives for seconds gains nothing from its optimising compiler or parallel collector.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


@pytest.fixture(scope="module")
def shared(seaweedfs, tmp_path_factory) -> Iterator[Shared]:
    upload(seaweedfs, tmp_path_factory.mktemp("tables"))
    with sharing_gateway(
        tmp_path_factory.mktemp("gateway"),
        store=seaweedfs.endpoint,
        role=seaweedfs.role_arn,
        keys=seaweedfs.gateway,
    ) as served:
        yield served


@pytest.fixture(scope="module")
def class_path(seaweedfs, tmp_path_factory) -> str:
    """The program, Kernel, Hadoop and its S3A, and a site's own configuration: which store there is."""
    require_environment()
    script = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / 'jars')"
    found = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=True)
    site = tmp_path_factory.mktemp("site")
    settings = {
        # Hadoop knows this scheme by the name s3a only.
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": seaweedfs.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": seaweedfs.region,
        # A refusal need not be tried again and again.
        "fs.s3a.attempts.maximum": "1",
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (site / "core-site.xml").write_text(f"<configuration>{properties}</configuration>")
    jars = f"{spark_jars()}/*:{found.stdout.strip()}/*"
    # Once, and not by each JVM that runs it.
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", site, PROGRAM], check=True)
    return f"{site}:{jars}"


def vended(shared: Shared, table: str) -> dict[str, Any]:
    _, schema, name = table.split(".")
    url = f"{shared.endpoint}/shares/{SHARE}/schemas/{schema}/tables/{name}/temporary-table-credentials"
    headers = {"Authorization": f"Bearer {shared.token}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method="POST")) as response:
        credentials: dict[str, Any] = json.load(response)["credentials"]
        return credentials


def read(
    class_path: str, location: str, keys: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    names = ("accessKeyId", "secretAccessKey", "sessionToken")
    file = folder / "keys"
    file.write_text("\n".join(keys[name] for name in names))
    return subprocess.run(
        [*JAVA, "-cp", class_path, PROGRAM.stem, location, file],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("table", [ORDERS, RETURNS])
def test_kernel_reads_the_location_of_the_answer(shared, class_path, tmp_path, table):
    credentials = vended(shared, table)

    done = read(class_path, credentials["location"], credentials["awsTempCredentials"], tmp_path)

    assert done.returncode == 0, done.stderr[-2000:]
    assert f"rows {len(IDS[table])}" in done.stdout.splitlines()


def test_store_refuses_kernel_the_neighbour(shared, class_path, tmp_path):
    credentials = vended(shared, ORDERS)

    done = read(class_path, LOCATIONS[ARCHIVE], credentials["awsTempCredentials"], tmp_path)

    assert done.returncode != 0
    assert "AccessDenied" in done.stderr
    assert "rows" not in done.stdout
