"""Clients that ask a front over and over, and count what became of it."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.http import eventually
from tests.proxies.front import Front

_CLIENTS = 4


@dataclass(frozen=True, slots=True)
class Question:
    method: str
    path: str
    # What says that an answer is right and whole.
    is_answered: Callable[[bytes], bool]


@dataclass
class Load:
    answered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, question: Question, failure: str) -> None:
        with self._lock:
            if failure:
                self.failed[f"{question.method} {question.path}: {failure}"] += 1
            else:
                self.answered[question.path] += 1

    def go_on(self, answers: int) -> None:
        """Wait until there are so many more answers."""
        wanted = self.answered.total() + answers
        eventually(lambda: self.answered.total() >= wanted or bool(self.failed), seconds=60)


@contextmanager
def load(front: Front, token: str, questions: Sequence[Question]) -> Iterator[Load]:
    """Ask until the block is left, with a few clients at a time."""
    counts, stop = Load(), threading.Event()
    clients = [
        threading.Thread(target=_ask, args=(front, token, questions[n:] + questions[:n], counts, stop))
        for n in range(_CLIENTS)
    ]
    for client in clients:
        client.start()
    try:
        yield counts
    finally:
        stop.set()
        for client in clients:
            client.join()


def _ask(
    front: Front, token: str, questions: Sequence[Question], counts: Load, stop: threading.Event
) -> None:
    connection = front.connect()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while not stop.is_set():
        for question in questions:
            failure = ""
            try:
                body = b"{}" if question.method == "POST" else None
                connection.request(question.method, question.path, body, headers)
                response = connection.getresponse()
                answer = response.read()
                if response.status != http.client.OK or not question.is_answered(answer):
                    failure = f"{response.status}, {len(answer)} bytes"
            except (OSError, http.client.HTTPException) as exc:
                failure = repr(exc)
                connection.close()
            counts.count(question, failure)
    connection.close()
