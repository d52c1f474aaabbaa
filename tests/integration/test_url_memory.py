"""A table that is read twice in a window: the same URLs, which are not signed twice."""

from __future__ import annotations

import json
import re

from tests.deployments import Deployment
from tests.http import request
from tests.integration.conftest import TOKEN

BIG = "shares/sample/schemas/big/tables/ten_thousand_files"
FILES = 10_000


def urls(deployment: Deployment) -> list[str]:
    answer = request(f"{deployment.base_url}/{BIG}/query", token=TOKEN, method="POST", body=b"{}")
    assert answer.status == 200
    lines = [json.loads(line) for line in answer.body.splitlines()]
    return [line["file"]["url"] for line in lines if "file" in line]


def counted(deployment: Deployment) -> dict[str, float]:
    """Return how many URLs were handed out, by where their signatures came from."""
    process = deployment.processes.get("presign", deployment.edge)
    text = request(f"{process.metrics_url}/metrics").body.decode()
    found = re.findall(r'sluice_url_signatures_total\{source="(\w+)",storage="sample"\} ([\d.e+]+)', text)
    return {source: float(count) for source, count in found}


def test_a_table_that_is_asked_for_again_in_the_window_is_not_signed_again(deployment):
    # The window may turn between two requests, and hardly between two more.
    for _ in range(3):
        first = urls(deployment)
        before = counted(deployment)
        second = urls(deployment)
        after = counted(deployment)
        if first == second:
            break
    assert len(first) == FILES
    assert first == second
    assert after["signed"] == before["signed"]
    assert after["memory"] == before["memory"] + FILES


def test_without_memory_the_same_urls_are_signed_again(deployment):
    presign = deployment.processes.get("presign", deployment.edge)
    deployment.rewrite({"cache": {"urls": {"memory": 0}}})
    assert presign.stop() == 0
    deployment.revive()

    first = urls(deployment)
    second = urls(deployment)

    assert counted(deployment)["memory"] == 0
    assert counted(deployment)["signed"] == 2 * FILES
    assert [url.partition("?")[0] for url in first] == [url.partition("?")[0] for url in second]
