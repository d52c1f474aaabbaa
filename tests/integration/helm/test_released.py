"""The processes of the chart, run here as in a cluster: keys, identities, probes and metrics are right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.commands.bearer import hash_of
from tests.builders import numbers, rows
from tests.components import HELM3
from tests.http import Answer, request
from tests.integration.helm.chart import EXAMPLES, render
from tests.integration.helm.released import TRUST_DOMAIN, Process, released
from tests.ports import free_ports
from tests.waiting import eventually

pytestmark = [pytest.mark.system, pytest.mark.component(HELM3)]

TOKEN = "slc_reader"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


@pytest.fixture(scope="module")
def http_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def processes(tmp_path_factory, http_port) -> Iterator[dict[str, Process]]:
    directory = tmp_path_factory.mktemp("release")
    table = numbers(directory / "lake")
    table.append(rows([1, 2, 3]))
    tables = [{"name": "numbers", "location": str(table.directory)}]
    config = {
        "publicUrl": f"http://127.0.0.1:{http_port}/delta-sharing",
        "shares": [{"name": "sales", "schemas": [{"name": "europe", "tables": tables}]}],
        "recipients": [{"name": "acme", "shares": ["sales"], "tokens": [{"hash": hash_of(TOKEN)}]}],
        "storages": [{"name": "lake", "prefix": str(directory / "lake"), "vendor": "local"}],
    }
    rendered = render(values={"config": config, "tls": {"trustDomain": TRUST_DOMAIN}})
    with released(rendered, directory, http_port) as running:
        yield running


def ask(port: int, path: str, **options: Any) -> Answer:
    return request(f"http://127.0.0.1:{port}/delta-sharing{path}", token=TOKEN, **options)


def test_a_recipient_reads_a_table_through_all_processes(processes, http_port):
    assert ask(http_port, "/shares").json["items"][0]["name"] == "sales"
    query = "/shares/sales/schemas/europe/tables/numbers/query"
    answer = ask(http_port, query, method="POST", body=b"{}")
    assert answer.status == 200, [process.server.log() for process in processes.values()]
    url = re.search(rb'"url":"([^"]+)"', answer.body)
    assert url is not None
    assert request(url.group(1).decode()).body.startswith(b"PAR1")


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_asks_what_is_there(processes, probe):
    assert {name: process.probe(probe).status for name, process in processes.items()} == dict.fromkeys(
        processes, 200
    )


def test_what_load_balancers_ask_for_is_answered_without_a_token(processes, http_port):
    alb = render("aws").of("Ingress")["sluice"]["metadata"]["annotations"]
    gke = render("gcp").of("HealthCheckPolicy")["sluice"]["spec"]["default"]["config"]["httpHealthCheck"]
    for path in (alb["alb.ingress.kubernetes.io/healthcheck-path"], gke["requestPath"]):
        assert request(f"http://127.0.0.1:{http_port}{path}").status == 200


def test_what_scaling_goes_by_is_counted_by_the_process_that_is_scaled(processes):
    scaled = 0
    for name in EXAMPLES:
        for autoscaler in render(name).of("HorizontalPodAutoscaler").values():
            process = autoscaler["metadata"]["name"].removeprefix("sluice-")
            for metric in autoscaler["spec"]["metrics"]:
                if metric["type"] == "Pods":
                    counter = metric["pods"]["metric"]["name"].removesuffix("_per_second") + "_total"
                    assert f"# TYPE {counter} counter" in processes[process].metrics()
                    scaled += 1
    assert scaled


def test_an_edge_stays_ready_when_a_service_is_gone(processes):
    processes["vending"].server.kill()
    edge = processes["edge"]
    # It knows, and says so, and still has what url access needs.
    eventually(lambda: b"without vending" in edge.probe("readinessProbe").body)
    assert {edge.probe(probe).status for probe in PROBES} == {200}


def test_an_edge_without_its_catalog_is_not_ready_and_not_restarted(processes):
    processes["catalog"].server.kill()
    edge = processes["edge"]
    eventually(lambda: edge.probe("readinessProbe").status == 503)
    assert {edge.probe(probe).status for probe in ("startupProbe", "livenessProbe")} == {200}
