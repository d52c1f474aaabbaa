from __future__ import annotations

import pytest

from tests.cases import each_case


@pytest.fixture
def problems_of(faults_of):
    """Return the faults of ``services``, apart from those of keys."""

    def find(text):
        faults = faults_of(f"services: {text}")
        return {path: fault for path, fault in faults.items() if not path.startswith("keys")}

    return find


@pytest.mark.parametrize("run", ["[]", "[edge, edge]"])
def test_services_to_run_are_named_once(problems_of, run):
    assert "services.run" in problems_of(f"{{run: {run}}}")


@pytest.mark.parametrize("listen", ["127.0.0.1:7001", "localhost:0", "'[::1]:7001'", "unix:/run/a.sock"])
def test_a_private_listener_needs_no_tls(problems_of, listen):
    assert not problems_of(f"{{run: [catalog], listen: {listen}}}")


@pytest.mark.parametrize("listen", ["0.0.0.0:7001", "'[::]:7001'", "10.0.0.1:7001", "catalog:7001"])
def test_another_listener_is_refused_without_tls(problems_of, listen):
    faults = problems_of(f"{{run: [catalog], listen: {listen}}}")
    assert list(faults) == ["services.listen"]
    assert "set services.tls" in faults["services.listen"].message


def test_another_listener_is_fine_with_tls(problems_of, tmp_path):
    pem = tmp_path / "a.pem"
    pem.touch()
    tls = f"{{certificate: {pem}, key: {pem}, ca: {pem}}}"
    assert not problems_of(f"{{run: [catalog], listen: 0.0.0.0:7001, tls: {tls}}}")


def test_tls_files_can_be_read(problems_of):
    faults = problems_of("{tls: {certificate: /missing/a, key: /missing/b, ca: /missing/c}}")
    assert list(faults) == ["services.tls.certificate", "services.tls.key", "services.tls.ca"]


def test_tls_that_cannot_be_read_is_not_blamed_on_the_listener(problems_of):
    assert list(problems_of("{run: [catalog], listen: 0.0.0.0:7001, tls: x}")) == ["services.tls"]


@pytest.mark.parametrize("listen", ["7001", "unix:a", "a:b"])
def test_a_listener_is_an_address(problems_of, listen):
    assert list(problems_of(f"{{run: [catalog], listen: '{listen}'}}")) == ["services.listen"]


def test_services_that_nobody_in_the_process_calls_need_a_listener(problems_of):
    faults = problems_of("{run: [catalog, vending]}")
    assert list(faults) == ["services.listen"]
    assert "nobody can reach catalog, vending" in faults["services.listen"].message
    assert not problems_of("{}")


def test_an_edge_needs_to_know_where_the_other_services_are(problems_of):
    faults = problems_of("{run: [edge, catalog], addresses: {snapshot: 'dns:///localhost:1'}}")
    assert list(faults) == ["services.addresses.presign", "services.addresses.vending"]
    assert "dns:///vending:9400" in faults["services.addresses.vending"].message


def test_other_services_do_not(problems_of):
    assert not problems_of("{run: [vending], listen: 'localhost:7001'}")


@each_case(
    "address",
    [
        "catalog",
        "http://a:1",
        "[]",
        "[10.0.0.1:1, b]",
        "''",
        "[a:1, b:1]",
        "['10.0.0.1:1', '[::1]:1']",
        "[unix:/a, unix:/b]",
    ],
)
def test_addresses_are_grpc_targets(problems_of, address):
    assert list(problems_of(f"{{addresses: {{catalog: {address}}}}}")) == ["services.addresses.catalog"]


def test_calls_that_leave_the_machine_in_the_clear_are_a_warning(read_text):
    addresses = "{catalog: ['127.0.0.1:1', '10.0.0.1:1'], vending: 'localhost:1'}"
    text = f"services: {{run: [edge, snapshot, presign], addresses: {addresses}}}"
    assert read_text(text).warnings == (
        "services.addresses.catalog: calls to it leave this machine without services.tls",
    )
