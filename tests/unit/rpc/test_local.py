from __future__ import annotations

import pytest
from grpc import StatusCode, aio

from gateway.rpc.local import LocalChannel
from gateway.v1 import vending_pb2 as pb
from gateway.v1 import vending_pb2_grpc
from tests.fakes.metrics import FakeRpcMetrics


class Echo(vending_pb2_grpc.VendingServicer):
    def __init__(self) -> None:
        self.seen: list[pb.IssueRequest] = []

    async def Issue(self, request, context):
        self.seen.append(request)
        return pb.IssueResponse(credential_id=request.grant)


async def test_messages_pass_by_reference():
    channel, servicer = LocalChannel(FakeRpcMetrics()), Echo()
    vending_pb2_grpc.add_VendingServicer_to_server(servicer, channel.as_server())
    request = pb.IssueRequest(grant="g")

    answer = await vending_pb2_grpc.VendingStub(channel.as_channel()).Issue(request)

    assert answer.credential_id == "g"
    assert servicer.seen[0] is request


async def test_a_service_that_is_not_here_is_unimplemented():
    stub = vending_pb2_grpc.VendingStub(LocalChannel(FakeRpcMetrics()).as_channel())

    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Issue(pb.IssueRequest())

    assert caught.value.code() is StatusCode.UNIMPLEMENTED


async def test_a_closed_channel_answers_no_more():
    channel = LocalChannel(FakeRpcMetrics())
    vending_pb2_grpc.add_VendingServicer_to_server(Echo(), channel.as_server())
    stub = vending_pb2_grpc.VendingStub(channel.as_channel())
    await channel.close()

    with pytest.raises(aio.AioRpcError):
        await stub.Issue(pb.IssueRequest())
