"""The compose file's own containers, started by its own words, and used as its docs say."""

from __future__ import annotations

import json

import pytest

from tests.components import CLIENT, COMPOSE, COMPOSE_GO, ENVOY, SEAWEEDFS, VALKEY
from tests.repository import ROOT
from tests.waiting import eventually

pytestmark = [
    pytest.mark.system,
    pytest.mark.component(COMPOSE, COMPOSE_GO, CLIENT, ENVOY, SEAWEEDFS, VALKEY),
]

READER = ROOT / ".venv-client" / "bin" / "python"
_DEADLINE = 120
# Of SeaweedFS: S3, and its gRPC; volumes, filer and master, and theirs.
STORE_PORTS = {8333, 18333}
CLOSED_PORTS = {8080, 8888, 9333, 18080, 18888, 19333}
# As /proc/net/tcp has them.
LISTENS, LOOPBACK = "0A", "0100007F"


@pytest.fixture(scope="module")
def read(stack, prepared):
    """Read a table as the recipient whom prepare.py has made a profile for."""
    generated = prepared / "compose" / "generated"
    authority = str(generated / "tls" / "ca.crt")
    script = ROOT / "tests" / "integration" / "image" / "read_as_recipient.py"

    def run():
        done = stack.run_outside(
            [READER, script, generated / "acme.share"],
            REQUESTS_CA_BUNDLE=authority,
            AWS_EC2_METADATA_DISABLED="true",
        )
        assert done.returncode == 0, f"{done.stderr[-2000:]}\n{stack.logs()}"
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def seen(read):
    """What a recipient has read before other tests look at the services."""
    return read()


def test_a_recipient_reads_a_table_by_url_and_by_dir_and_not_its_neighbour(seen):
    assert seen["url"] > 0
    assert (seen["dir"], seen["same"], seen["outside"]) == (seen["url"], True, "AccessDenied")


def test_both_replicas_of_presign_and_both_edges_get_work(stack, prepared):
    presigns = stack.services["presign"]
    edges = [stack.services[name][0] for name in ("edge-1", "edge-2")]

    # An edge that started before the second replica finds it when it looks its name up again.
    def have_all_worked() -> bool:
        ask(stack, prepared, times=20)
        signed = [metric(one, "sluice_rpc_requests_total", "Presign/Sign") for one in presigns]
        asked = [metric(one, "sluice_http_requests_total") for one in edges]
        return bool(min(signed + asked) > 0)

    eventually(have_all_worked, seconds=_DEADLINE)


@pytest.mark.usefixtures("seen")
def test_presign_and_vending_share_what_they_made_by_redis(stack):
    using = [*stack.services["presign"], *stack.services["vending"]]
    eventually(lambda: [metric(one, "sluice_cache_redis_up") for one in using] == [1, 1, 1])
    # A busy machine makes operations late, and nothing else.
    errors = "sluice_cache_redis_errors_total"
    assert sum(metric(one, errors) for one in using) == sum(
        metric(one, errors, 'reason="timeout"') for one in using
    )


@pytest.mark.usefixtures("seen")
def test_the_audit_log_has_the_recipients_own_address_and_no_secret(stack, prepared):
    state = prepared / "compose" / "generated" / "state"
    events = [
        json.loads(line)
        for file in state.glob("edge-*/audit/*.jsonl*")
        for line in file.read_text().splitlines()
    ]
    granted = [event for event in events if event["kind"] == "grant"]
    assert {event["mode"] for event in granted} == {"url", "dir"}
    # Envoy's client, and not Envoy.
    outside = {attachment.address for attachment in stack.networks.members[-1].attachments}
    assert {event["remote"] for event in granted} <= outside


@pytest.mark.parametrize(
    ("service", "host", "network", "port"),
    [
        ("edge-1", "redis", "data", 6379),
        ("edge-1", "seaweedfs", "data", 8333),
        ("edge-1", "seaweedfs", "store", 8333),
        ("envoy", "seaweedfs", "store", 8333),
        ("catalog", "redis", "data", 6379),
        ("envoy", "catalog", "inner", 9400),
    ],
)
def test_who_has_no_business_with_a_service_has_no_way_to_it(stack, service, host, network, port):
    address = stack.services[host][0].addresses[network]
    code = f"import socket; socket.create_connection(({address!r}, {port}), 60)"
    done = stack.services[service][0].check(["python3", "-c", code])
    assert "Network is unreachable" in done.stderr


def test_the_store_listens_to_others_for_s3_alone(stack):
    """gRPC of S3 cannot be bound elsewhere: what it answers is below."""
    store = stack.services["seaweedfs"][0]
    table = store.check(["cat", "/proc/net/tcp", "/proc/net/tcp6"]).stdout
    # The local address and the state of each socket, in hexadecimal numbers.
    sockets = [line.split()[1:4:2] for line in table.splitlines() if "local_address" not in line]
    listening = [local.split(":") for local, state in sockets if state == LISTENS]
    assert len(listening) > len(STORE_PORTS)
    assert {int(port, 16) for address, port in listening if address != LOOPBACK} == STORE_PORTS


@pytest.mark.parametrize(
    ("service", "open_ports"),
    [
        *((name, set()) for name in ("envoy", "edge-1", "edge-2", "catalog")),
        *((name, STORE_PORTS) for name in ("snapshot", "presign", "vending")),
    ],
)
def test_nobody_gets_past_s3_to_what_asks_for_no_credentials(stack, service, open_ports):
    addresses = list(stack.services["seaweedfs"][0].addresses.values())
    code = (
        "import itertools, socket\n"
        f"for address, port in itertools.product({addresses}, {sorted(STORE_PORTS | CLOSED_PORTS)}):\n"
        "    with socket.socket() as one:\n"
        "        one.settimeout(60)\n"
        "        if not one.connect_ex((address, port)): print(port)\n"
    )
    done = stack.services[service][0].check(["python3", "-c", code])
    assert done.returncode == 0, done.stderr
    assert set(map(int, done.stdout.split())) == open_ports


@pytest.mark.parametrize("service", ["snapshot", "presign", "vending"])
def test_the_stores_own_grpc_takes_nobody_of_the_fleet(stack, prepared, service):
    """It is where identities are put: whoever it heard could make itself an administrator."""
    code = (
        "import grpc, pathlib, sys\n"
        "read = lambda name: pathlib.Path('/run/secrets', name).read_bytes()\n"
        "to, authority = sys.argv[1], sys.argv[2].encode()\n"
        "own = grpc.ssl_channel_credentials(authority, read('tls.key'), read('tls.crt'))\n"
        "named = [('grpc.ssl_target_name_override', 'localhost')]\n"
        "for channel in (grpc.insecure_channel(to), grpc.secure_channel(to, own, named)):\n"
        "    try:\n"
        "        channel.unary_unary('/messaging_pb.SeaweedS3IamCache/ListPolicies')(b'', timeout=60)\n"
        "        print('OK')\n"
        "    except grpc.RpcError as exc:\n"
        "        print(exc.code().name)\n"
    )
    address = stack.services["seaweedfs"][0].addresses["data"]
    authority = (prepared / "compose" / "generated" / "store" / "grpc-ca.crt").read_text()
    done = stack.services[service][0].check(["python", "-c", code, f"{address}:18333", authority])
    assert done.stdout.split() == ["UNAVAILABLE", "UNAVAILABLE"], done.stderr


def test_prometheus_finds_every_replica_by_its_service(stack):
    wanted = {"edge": 2, "catalog": 1, "snapshot": 1, "presign": 2, "vending": 1}
    eventually(lambda: targets(stack) == wanted, lambda: str(targets(stack)), seconds=_DEADLINE, pause=0.5)


def test_a_stopped_edge_is_not_missed(read, stack):
    assert stack.services["edge-1"][0].stop() == 0
    assert read()["same"]


def ask(stack, prepared, times):
    """Query a table again and again, as quickly as one client can."""
    generated = prepared / "compose" / "generated"
    profile = json.loads((generated / "acme.share").read_text())
    url = f"{profile['endpoint']}/shares/sample/schemas/lake/tables/orders/query"
    command = ["curl", "--silent", "--fail", "--cacert", generated / "tls" / "ca.crt", "--request", "POST"]
    headers = ["--header", f"Authorization: Bearer {profile['bearerToken']}", "--json", "{}"]
    done = stack.run_outside([*command, *headers, *[url] * times])
    assert done.stdout.count('"protocol"') == times, done.stdout[-500:]


def metric(container, name, text=""):
    """Return the sum of a metric's samples, of those that have a text in them."""
    code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9401/metrics').read().decode())"
    lines = container.check(["python", "-c", code]).stdout.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name) and text in line)


def targets(stack):
    """Return how many of each service's processes Prometheus has scraped."""
    done = stack.run_outside(["curl", "--silent", "http://127.0.0.1:9090/api/v1/targets"])
    found: dict[str, int] = {}
    for target in json.loads(done.stdout)["data"]["activeTargets"] if done.stdout else ():
        job = target["labels"]["job"]
        if job.startswith("sluice-") and target["health"] == "up":
            found[job.removeprefix("sluice-")] = found.get(job.removeprefix("sluice-"), 0) + 1
    return found
