"""A gateway for a recipient's library, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sluice_recipient.errors import Unavailable
from sluice_recipient.transport import Request, Response

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ENDPOINT = "https://gateway.example/delta-sharing"
TOKEN = "token-of-the-profile"
PROFILE = {"shareCredentialsVersion": 1, "endpoint": f"{ENDPOINT}/", "bearerToken": TOKEN}
SECRETS = ("made-up-secret-key", "made-up-session-token", TOKEN)

Answer = Response | Exception | Callable[[Request], Response]


class FakeTransport:
    """Gives the answers of a list, one after the other, and the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Response) else answer(request)

    @property
    def paths(self) -> list[str]:
        return [request.url.removeprefix(ENDPOINT) for request in self.requests]


def by_path(**answers: Response) -> Callable[[Request], Response]:
    """Answer each request by the last word of its path, ``-`` being ``_``."""

    def answer(request: Request) -> Response:
        word = request.url.partition("?")[0].rpartition("/")[2].replace("-", "_")
        return answers.get(word) or error(404, f"no {word} here")

    return answer


def ok(content: object, **headers: str) -> Response:
    return Response(status=200, headers=headers, body=json.dumps(content).encode())


def lines(contents: Iterable[object]) -> Response:
    return Response(status=200, body="\n".join(json.dumps(content) for content in contents).encode())


def error(status: int, message: str = "made up", **headers: str) -> Response:
    body = json.dumps({"errorCode": "MADE_UP", "message": message}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, headers=named, body=body)


def unreachable() -> Unavailable:
    return Unavailable("cannot reach gateway.example: made up")


def metadata(**fields: Any) -> Response:
    described = {"location": "s3://lake/orders", "accessModes": ["url", "dir"]} | fields
    return lines([{"protocol": {}}, {"metaData": described}])


def aws_answer(
    expires_at: datetime = NOON + timedelta(hours=1),
    key: str = "AKIA1",
    region: str | None = None,
    endpoint: str | None = None,
) -> Response:
    keys = {"accessKeyId": key, "secretAccessKey": SECRETS[0], "sessionToken": SECRETS[1]}
    place = {"region": region, "endpoint": endpoint}
    keys |= {name: value for name, value in place.items() if value is not None}
    return _credentials("s3://lake/orders", expires_at, awsTempCredentials=keys)


def azure_answer(expires_at: datetime = NOON + timedelta(hours=1)) -> Response:
    location = "abfss://lake@account.dfs.core.windows.net/orders"
    return _credentials(location, expires_at, azureUserDelegationSas={"sasToken": "sig=made-up"})


def gcp_answer(expires_at: datetime = NOON + timedelta(hours=1)) -> Response:
    return _credentials("gs://lake/orders", expires_at, gcpOauthToken={"oauthToken": "ya29.made-up"})


def _credentials(location: str, expires_at: datetime, **block: object) -> Response:
    expires = int(expires_at.timestamp() * 1000)
    return ok({"credentials": {"location": location, "expirationTime": expires, **block}})
