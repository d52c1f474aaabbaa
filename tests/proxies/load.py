"""Clients that ask a front over and over, and count what became of it."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle

from tests.proxies.front import Front
from tests.waiting import eventually

# Below the rates of the shipped configurations.
_PAUSE = 0.03


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
        eventually(lambda: self.answered.total() >= wanted or bool(self.failed))


@contextmanager
def load(front: Front, token: str, clients_questions: Sequence[Sequence[Question]]) -> Iterator[Load]:
    """Ask until the block is left, with a client for each list of questions."""
    counts, stop = Load(), threading.Event()
    clients = [
        threading.Thread(target=_ask_on, args=(front, token, questions, counts, stop))
        for questions in clients_questions
    ]
    for client in clients:
        client.start()
    try:
        yield counts
    finally:
        stop.set()
        for client in clients:
            client.join()


def _ask_on(
    front: Front, token: str, questions: Sequence[Question], counts: Load, stop: threading.Event
) -> None:
    connection = front.connect()
    for question in cycle(questions):
        try:
            counts.count(question, _ask(connection, question, token))
        except (OSError, http.client.HTTPException) as exc:
            counts.count(question, repr(exc))
            connection.close()
        if stop.wait(_PAUSE):
            break
    connection.close()


def _ask(connection: http.client.HTTPSConnection, question: Question, token: str) -> str:
    """Return what is wrong with the answer, or nothing."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(question.method, question.path, b"{}" if question.method == "POST" else None, headers)
    response = connection.getresponse()
    answer = response.read()
    if response.status == http.client.OK and question.is_answered(answer):
        return ""
    return f"{response.status}, {len(answer)} bytes"
