from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.commands import dispatch


class Ops(HTTPServer):
    """A metrics listener in this process, which answers what it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers = {
            "/healthz": (200, json.dumps({"status": "ok"})),
            "/readyz": (503, json.dumps({"status": "not ready: vending", "services": {"vending": "gone"}})),
        }


class _Answering(BaseHTTPRequestHandler):
    server: Ops

    def do_GET(self):
        status, body = self.server.answers[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        """Say nothing between the dots."""


@pytest.fixture
def ops(socket_enabled):
    with Ops() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_process_that_answers_is_alive(ops, capsys):
    assert dispatch(["health", f"http://127.0.0.1:{ops.server_port}"], {}) == 0
    assert capsys.readouterr().out == "200 ok\n"


def test_one_that_cannot_serve_is_alive_and_not_ready(ops, capsys):
    assert dispatch(["health", "--ready", f"http://127.0.0.1:{ops.server_port}/"], {}) == 1
    assert capsys.readouterr().out == "503 not ready: vending\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_without_a_url_the_listener_of_the_environment_is_asked(host, ops, capsys):
    assert dispatch(["health"], {"SLUICE_METRICS_LISTEN": f"{host}:{ops.server_port}"}) == 0
    assert capsys.readouterr().out == "200 ok\n"


@pytest.mark.parametrize("body", ["<html>", "[]", "{}"])
def test_another_program_on_the_port_is_told_apart(body, ops, capsys):
    ops.answers["/healthz"] = (404, body)
    assert dispatch(["health", f"http://127.0.0.1:{ops.server_port}"], {}) == 1
    assert capsys.readouterr().out == "404 an answer that is no gateway's\n"


def test_nobody_there_is_a_failure_in_one_line(ops, capsys):
    port = ops.server_port
    ops.server_close()
    assert dispatch(["health", f"http://127.0.0.1:{port}"], {}) == 1
    (complaint,) = capsys.readouterr().err.splitlines()
    assert complaint.startswith(f"sluice: 127.0.0.1:{port} does not answer")


@pytest.mark.parametrize(
    "arguments",
    [["127.0.0.1:9401"], ["https://127.0.0.1:9401"], ["http://127.0.0.1"], ["http://127.0.0.1:x"]],
)
def test_what_is_no_address_of_metrics_is_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["health", *arguments], {})
    assert left.value.code == 2
    assert "is not like http://127.0.0.1:9401" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "61", "soon"])
def test_a_time_that_is_none_is_wrong_usage(seconds, capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["health", f"--timeout={seconds}"], {})
    assert left.value.code == 2
    assert "not a number of seconds" in capsys.readouterr().err


def test_a_listener_that_is_none_is_named(capsys):
    assert dispatch(["health"], {"SLUICE_METRICS_LISTEN": "everywhere"}) == 1
    assert "SLUICE_METRICS_LISTEN" in capsys.readouterr().err


def test_a_probe_starts_nothing_of_the_gateway():
    code = "import sys; from gateway.commands import dispatch; dispatch(['health', '--timeout=9'], {}); "
    code += "print(sorted({'grpc', 'polars', 'aiohttp', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
