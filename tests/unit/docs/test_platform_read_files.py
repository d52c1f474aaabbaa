"""The example that reads files waits where it is told to."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from gateway.v1 import snapshot_pb2 as pb
from tests.repository import ROOT


class Refusal(grpc.RpcError):
    def __init__(self, *trailing: tuple[str, str]) -> None:
        self._trailing = trailing

    def trailing_metadata(self) -> Any:
        return self._trailing


@pytest.fixture
def read_files(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples" / "platform" / "python"))
    import read_files  # type: ignore[import-not-found]  # noqa: PLC0415 -- found as its users find it

    yield read_files
    for name in ("read_files", "sluice"):
        sys.modules.pop(name)


@pytest.fixture
def read(read_files, monkeypatch):
    def read(*streams: Any) -> list[pb.FilePage]:
        """Read pages of a service that answers one call after the other."""
        left = iter(streams)

        def stream(request: pb.QueryRequest, timeout: float) -> Any:
            for message in next(left):
                if isinstance(message, Exception):
                    raise message
                yield message

        monkeypatch.setattr(
            read_files.snapshot_pb2_grpc, "SnapshotStub", lambda _: SimpleNamespace(Query=stream)
        )
        return list(read_files.read_pages(None, SimpleNamespace(token="grant")))

    return read


PAGE = pb.QueryResponse(page=pb.FilePage(files=1))
END = pb.QueryResponse(end=pb.AnswerEnd())


def test_a_stream_that_is_told_to_wait_is_begun_again(read):
    wait = Refusal(("sluice-retry-after-ms", "1"))
    assert len(read([wait], [wait], [PAGE, PAGE, END])) == 2


def test_a_stream_that_is_refused_for_another_reason_is_not(read):
    with pytest.raises(Refusal):
        read([Refusal()], [PAGE, END])


def test_a_stream_that_fails_after_its_first_page_is_not_begun_again(read):
    with pytest.raises(Refusal):
        read([PAGE, Refusal(("sluice-retry-after-ms", "1"))], [PAGE, END])


@pytest.mark.parametrize("messages", [[], [PAGE]], ids=["empty", "without its end"])
def test_a_stream_without_its_end_is_not_whole(read, messages):
    with pytest.raises(EOFError):
        read(messages)
