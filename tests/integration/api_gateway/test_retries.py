"""A request is sent to another edge when that is safe, once; and an answer that has begun is never mended."""

from __future__ import annotations

import http.client

import pytest

from tests.proxies.front import PREFIX, Front
from tests.proxies.recording_edge import Asked, RecordingEdge

TABLE = f"{PREFIX}/shares/s/schemas/d/tables/t"
READS = [
    ("GET", f"{PREFIX}/shares"),
    ("POST", f"{TABLE}/query"),
    ("POST", f"{TABLE}/temporary-table-credentials"),
]


def asked_of(recorded: list[RecordingEdge]) -> list[Asked]:
    return [asked for edge in recorded for asked in edge.asked]


@pytest.mark.parametrize(("method", "path"), READS)
def test_a_read_that_an_edge_breaks_off_is_answered_by_the_other(
    recording_front: Front, recorded, method: str, path: str
) -> None:
    broken, whole = recorded
    broken.fault = "before the answer"
    tries = 0
    while not broken.asked and tries < 50:
        assert (
            recording_front.ask(path, method=method, body=b"{}" if method == "POST" else None).status == 200
        )
        tries += 1
    assert len(broken.asked) == 1
    # The same request, under the same id.
    sent_again = [
        asked for asked in whole.asked if asked.all("x-request-id") == broken.asked[0].all("x-request-id")
    ]
    assert [(asked.method, asked.target, asked.body) for asked in sent_again] == [
        (method, path, b"{}" if method == "POST" else b"")
    ]


def test_a_request_is_sent_twice_at_most(recording_front: Front, recorded) -> None:
    for edge in recorded:
        edge.fault = "before the answer"
    answer = recording_front.ask(f"{PREFIX}/shares")
    assert (answer.status, answer.json["errorCode"]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert answer.headers["retry-after"]
    assert len(asked_of(recorded)) == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_what_may_change_something_is_not_sent_again_once_an_edge_has_seen_it(
    kind, recording_front: Front, recorded, method: str
) -> None:
    for edge in recorded:
        edge.fault = "before the answer"
    answer = recording_front.ask(f"{TABLE}/something-new", method=method, body=b"{}")
    if kind == "nginx" and method != "POST":
        # It takes these for what may be sent again, and so sends them nowhere.
        assert (answer.status, answer.json["errorCode"]) == (405, "UNSUPPORTED_OPERATION")
        assert answer.headers["allow"] == "GET, HEAD, POST"
        assert not asked_of(recorded)
    else:
        assert answer.status == 503
        assert len(asked_of(recorded)) == 1


def test_an_answer_that_has_begun_is_broken_off_and_not_asked_for_again(
    recording_front: Front, recorded
) -> None:
    for edge in recorded:
        edge.fault = "within the answer"
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        recording_front.ask(f"{PREFIX}/shares")
    assert len(asked_of(recorded)) == 1
