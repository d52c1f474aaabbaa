"""What the gRPC listener of a process offers beside its services."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from gateway.config.schema import ServicesConfig
from gateway.errors import InvalidArgument, Unavailable, Unsupported
from gateway.rpc.dial import dial
from gateway.rpc.local import LocalChannel
from gateway.rpc.server import Health, is_private, listen, network_server
from gateway.services.presign import codec
from gateway.v1 import vending_pb2 as pb
from gateway.v1 import vending_pb2_grpc
from tests.cases import each_case
from tests.certificates import new_authority
from tests.fakes.metrics import FakeRpcMetrics
from tests.name_server import running_names
from tests.waiting import eventually_async

SERVICE = "gateway.v1.Vending"


class NamedServicer(vending_pb2_grpc.VendingServicer):
    def __init__(self, name: str) -> None:
        self.name = name
        self.peers: set[str] = set()

    async def Issue(self, request, context):
        self.peers.add(context.peer())
        return pb.IssueResponse(credential_id=self.name)


@pytest.fixture
async def stack():
    async with AsyncExitStack() as opened:
        yield opened


async def start(stack, *, name="one", health=None, servicer=None, **settings) -> str:
    config = ServicesConfig(**{"listen": "127.0.0.1:0", **settings})
    server = network_server(config, FakeRpcMetrics())
    vending_pb2_grpc.add_VendingServicer_to_server(servicer or NamedServicer(name), server)
    (health or Health()).register(server)
    port = await listen(server, config, (SERVICE,))
    stack.push_async_callback(server.stop, None)
    return f"127.0.0.1:{port}"


async def open_channel(stack, addresses, tls=None, service=""):
    channel = dial(addresses, tls, service=service)
    stack.push_async_callback(channel.close)
    return channel


async def test_several_addresses_take_turns(stack):
    addresses = [await start(stack, name=name) for name in ("a", "b", "c")]
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, addresses))
    # A channel begins with whichever replica it is connected to first.
    await until_answered_by(stub, {"a", "b", "c"})

    answers = Counter([(await stub.Issue(pb.IssueRequest())).credential_id for _ in range(30)])

    assert answers == {"a": 10, "b": 10, "c": 10}


async def test_an_address_that_is_gone_is_passed_over(stack):
    alive = await start(stack)
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, [alive, "127.0.0.1:1"]))

    answers = {(await stub.Issue(pb.IssueRequest(), timeout=60)).credential_id for _ in range(10)}

    assert answers == {"one"}


async def test_several_names_are_refused_with_the_way_out():
    with pytest.raises(InvalidArgument, match="dns:///"):
        dial(["a.internal:1", "b.internal:1"], None)


async def test_health_tells_each_service_until_the_process_stops(stack):
    health = Health()
    await health.serve(SERVICE)
    local = LocalChannel(FakeRpcMetrics())
    health.register(local.as_server())
    network = await open_channel(stack, await start(stack, health=health))

    for channel in (network, local.as_channel()):
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    await health.stop()
    for channel in (network, local.as_channel()):
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("reflection", [True, False])
async def test_reflection_is_there_when_it_is_switched_on(stack, reflection):
    stub = reflection_pb2_grpc.ServerReflectionStub(
        await open_channel(stack, await start(stack, reflection=reflection))
    )
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))

    if reflection:
        answer = await anext(aiter(call))
        names = {service.name for service in answer.list_services_response.service}
        assert {SERVICE, "grpc.health.v1.Health"} <= names
    else:
        with pytest.raises(aio.AioRpcError) as caught:
            await anext(aiter(call))
        assert caught.value.code() is StatusCode.UNIMPLEMENTED


async def test_a_request_larger_than_any_is_not_read_and_the_largest_is(stack):
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, await start(stack)))

    # As large as a page of paths with its grant.
    largest = pb.IssueRequest(grant="x" * (codec.MAX_BYTES + 64 * 1024))
    assert (await stub.Issue(largest)).credential_id == "one"

    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Issue(pb.IssueRequest(grant="x" * (8 * 1024 * 1024)))
    assert caught.value.code() is StatusCode.RESOURCE_EXHAUSTED


async def test_a_listener_off_loopback_without_mutual_tls_is_refused(stack):
    with pytest.raises(Unsupported, match=r"services\.tls"):
        await start(stack, listen="0.0.0.0:0")


async def test_a_taken_port_is_a_clear_error(stack):
    taken = await start(stack)

    with pytest.raises(Unavailable, match="is it taken"):
        await start(stack, listen=taken)


async def test_a_peer_without_a_certificate_is_turned_away(stack, tmp_path):
    address = await start(stack, tls=new_authority(tmp_path).issue("vending"))
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, address))

    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Issue(pb.IssueRequest(), timeout=60)

    assert caught.value.code() is StatusCode.UNAVAILABLE


async def test_a_peer_with_a_certificate_of_another_authority_is_turned_away(stack, tmp_path):
    ours, theirs = new_authority(tmp_path / "ours"), new_authority(tmp_path / "theirs")
    address = await start(stack, tls=ours.issue("vending"))
    stranger = theirs.issue("edge").model_copy(update={"ca": str(ours.ca)})
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, address, stranger))

    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Issue(pb.IssueRequest(), timeout=60)

    assert caught.value.code() is StatusCode.UNAVAILABLE


async def test_a_connection_has_a_bounded_age(stack):
    servicer = NamedServicer("one")
    address = await start(stack, servicer=servicer, maxConnectionAge=timedelta(seconds=1))
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, address))

    async def is_replaced() -> bool:
        # Calls go on as connections are replaced underneath.
        assert (await stub.Issue(pb.IssueRequest(), timeout=60)).credential_id == "one"
        return len(servicer.peers) > 1

    await eventually_async(is_replaced)


async def test_a_replica_that_is_about_to_stop_is_sent_nothing_more(stack):
    leaving, staying = Health(), Health()
    for health in (leaving, staying):
        await health.serve(SERVICE)
    addresses = [await start(stack, name="a", health=leaving), await start(stack, name="b", health=staying)]
    stub = vending_pb2_grpc.VendingStub(await open_channel(stack, addresses, service=SERVICE))
    await until_answered_by(stub, {"a", "b"})
    assert leaving.is_watched

    await leaving.stop()

    await until_answered_by(stub, {"b"})
    assert {(await stub.Issue(pb.IssueRequest())).credential_id for _ in range(20)} == {"b"}


async def test_nobody_watches_a_process_whose_callers_are_gone(stack):
    health = Health()
    await health.serve(SERVICE)
    address = await start(stack, health=health)
    channel = await open_channel(stack, address, service=SERVICE)
    await vending_pb2_grpc.VendingStub(channel).Issue(pb.IssueRequest())
    assert health.is_watched

    await channel.close()

    await eventually_async(lambda: not health.is_watched)


async def test_new_addresses_behind_a_name_are_found_as_connections_grow_old(stack):
    with running_names(["127.0.0.1"]) as names:
        age = timedelta(seconds=1)
        first = await start(stack, name="a", maxConnectionAge=age)
        port = first.rpartition(":")[2]
        stub = vending_pb2_grpc.VendingStub(
            await open_channel(stack, f"dns://127.0.0.1:{names.port}/vending.test:{port}")
        )
        await until_answered_by(stub, {"a"})
        await start(stack, name="b", listen=f"127.0.0.2:{port}", maxConnectionAge=age)

        names.addresses = ("127.0.0.1", "127.0.0.2")

        await until_answered_by(stub, {"a", "b"})


async def until_answered_by(stub, replicas: set[str]) -> None:
    async def are_all() -> bool:
        return {(await stub.Issue(pb.IssueRequest())).credential_id for _ in range(6)} == replicas

    await eventually_async(are_all, f"calls are answered by {replicas}")


@each_case(
    ("address", "private"),
    [
        ("127.0.0.1:1", True),
        ("127.3.2.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("LOCALHOST:1", True),
        ("unix:/run/s", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("sluice.internal:1", False),
        (":1", False),
    ],
)
def test_what_only_this_machine_reaches_is_private(address, private):
    assert is_private(address) is private
