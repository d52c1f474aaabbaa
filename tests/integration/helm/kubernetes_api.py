"""The few calls of a Kubernetes API that the tests of the chart make by themselves."""

from __future__ import annotations

import json
import ssl
import urllib.error
from http import HTTPStatus
from http.client import HTTPSConnection
from io import BytesIO
from time import sleep
from typing import Any

Object = dict[str, Any]

_PAUSES = (0.5, 1, 2, 4, 8, 10, 10, 10)


class KubernetesApi:
    """An API server on loopback, as somebody who may do everything."""

    def __init__(self, port: int, token: str) -> None:
        self.base = f"https://127.0.0.1:{port}"
        self._port = port
        self._token = token
        # The server issues its own certificate at its start.
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE
        # Idle connections: a TLS handshake costs more than most requests.
        self._idle: list[HTTPSConnection] = []

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def is_ready(self) -> bool:
        try:
            self._send("GET", "/readyz")
        except OSError:
            return False
        return True

    def create(self, path: str, body: Object) -> Object:
        """Create an object, or leave the one that is there."""
        try:
            return self._call("POST", path, body)
        except urllib.error.HTTPError as exc:
            if exc.code != HTTPStatus.CONFLICT:
                raise AssertionError(f"{path}: {exc.read().decode()}") from exc
            return body

    def admits(self, path: str, body: Object) -> str:
        """Try an object without keeping it; return why it is refused, or nothing."""
        try:
            self._call("POST", f"{path}?dryRun=All", body)
        except urllib.error.HTTPError as exc:
            message: str = json.load(exc)["message"]
            return message
        return ""

    def get(self, path: str) -> Object:
        return self._call("GET", path)

    def find(self, path: str) -> Object | None:
        """Return an object, or nothing where it is not there."""
        try:
            return self.get(path)
        except urllib.error.HTTPError as exc:
            if exc.code != HTTPStatus.NOT_FOUND:
                raise
            return None

    def list(self, path: str) -> list[Object]:
        items: list[Object] = self._call("GET", path)["items"]
        return items

    def patch(self, path: str, body: Object) -> Object:
        """Change an object, lists by the names of what is in them."""
        return self._call("PATCH", path, body)

    def delete(self, path: str) -> None:
        """Delete an object, if it is there."""
        try:
            self._call("DELETE", path)
        except urllib.error.HTTPError as exc:
            if exc.code != HTTPStatus.NOT_FOUND:
                raise

    def _call(self, method: str, path: str, body: Object | None = None) -> Object:
        for pause in _PAUSES:
            try:
                return self._try(method, path, body)
            except urllib.error.HTTPError as exc:
                # It is about to have the kind that was just defined.
                if exc.code != HTTPStatus.TOO_MANY_REQUESTS:
                    raise
                sleep(pause)
        return self._try(method, path, body)

    def _try(self, method: str, path: str, body: Object | None) -> Object:
        found: Object = json.loads(self._send(method, path, body))
        return found

    def _send(self, method: str, path: str, body: Object | None = None) -> bytes:
        """Send a request on an idle connection, or on a new one."""
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._exchange(self._connection(), method, path, body)
        try:
            return self._exchange(connection, method, path, body)
        except (ConnectionError, ssl.SSLEOFError):
            # The server closes connections that were idle for long.
            return self._exchange(self._connection(), method, path, body)

    def _connection(self) -> HTTPSConnection:
        return HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=60)

    def _exchange(self, connection: HTTPSConnection, method: str, path: str, body: Object | None) -> bytes:
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            with connection.getresponse() as response:
                content = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise urllib.error.HTTPError(
                f"{self.base}{path}", response.status, response.reason, response.headers, BytesIO(content)
            )
        return content
