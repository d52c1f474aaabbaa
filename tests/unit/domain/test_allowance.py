from __future__ import annotations

from gateway.domain.allowance import METHODS, Allowance, method_names
from gateway.v1 import catalog_pb2, presign_pb2, snapshot_pb2, vending_pb2
from tests.cases import each_case


def test_names_are_those_of_the_protos():
    files = (catalog_pb2, presign_pb2, snapshot_pb2, vending_pb2)
    services = [service for file in files for service in file.DESCRIPTOR.services_by_name.values()]

    assert {service.name: {method.name for method in service.methods} for service in services} == {
        name: set(methods) for name, methods in METHODS.items()
    }


def test_services_and_methods_may_be_named():
    assert {"Catalog", "Catalog.Resolve", "Vending", "Vending.Issue"} <= set(method_names())


@each_case(
    ("methods", "permitted"),
    [
        (None, True),
        (frozenset(), False),
        (frozenset({"Catalog.Resolve"}), True),
        (frozenset({"Catalog"}), True),
        (frozenset({"Catalog.ListShares"}), False),
        (frozenset({"Vending", "Snapshot.Query"}), False),
    ],
)
def test_what_a_list_does_not_name_is_denied(methods, permitted):
    assert Allowance(methods=methods).permits("Catalog.Resolve") is permitted
