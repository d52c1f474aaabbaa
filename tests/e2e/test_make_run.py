"""A new user's first minutes: start the demo, paste what it prints, stop it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.components import BOTO3, CLIENT, CURL, DEMO, SEAWEEDFS
from tests.e2e.official_client import PYTHON, environment, require_environment
from tests.ports import free_port
from tests.repository import ROOT
from tests.waiting import START_SECONDS

SLUICE = Path(sys.prefix) / "bin" / "sluice"
STOP_SECONDS = 120
MARK = "== next snippet =="

pytestmark = pytest.mark.component(DEMO)


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo, and what it has printed."""

    process: subprocess.Popen[str]
    port: int
    output: str

    def paragraph(self, beginning: str, or_begins: str = "") -> str:
        """Return the paragraph of what was printed that begins so."""
        begins = (beginning, or_begins) if or_begins else beginning
        (found,) = [part for part in self.output.split("\n\n") if part.startswith(begins)]
        return found

    def stop(self, number: signal.Signals, *, whole_group: bool = False) -> tuple[int, str]:
        """Return the exit status and all that was printed on the way out.

        A terminal sends Ctrl-C to the whole foreground group: to make and the demo alike.
        """
        if whole_group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=STOP_SECONDS)
        return self.process.returncode, rest


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A demo that built its sample in a new state directory, without S3, until SIGTERM stopped it."""

    state: Path
    demo: Demo
    status: int
    rest: str


@pytest.fixture(scope="module")
def first_run(tmp_path_factory) -> FirstRun:
    state: Path = tmp_path_factory.mktemp("home") / "state"
    with running(state, "--no-s3") as demo:
        status, rest = demo.stop(signal.SIGTERM)
    return FirstRun(state, demo, status, rest)


@pytest.fixture(scope="module")
def state(first_run) -> Path:
    """Return a state directory in which a demo ran before."""
    path: Path = first_run.state
    return path


@pytest.fixture(scope="module")
def spare(state, tmp_path_factory) -> Path:
    """Return a directory with the sample for more demos: one runs from each at a time."""
    path: Path = tmp_path_factory.mktemp("home") / "spare"
    # A demo replaces files of the sample and never writes to them, so hard links are enough.
    shutil.copytree(state / "sample", path / "sample", copy_function=os.link)
    return path


@pytest.fixture(scope="module")
def demo(state) -> Iterator[Demo]:
    """Run a demo with S3, which the last test of the module stops."""
    with running(state) as demo:
        yield demo


def test_the_profile_has_a_line_of_its_own_and_is_private(demo, state):
    (path,) = re.findall(r"^profile: (.+)$", demo.output, re.MULTILINE)
    assert Path(path).is_relative_to(state)
    assert Path(path).stat().st_mode & 0o077 == 0


def test_the_token_is_not_printed(demo, state):
    profile = Path(re.findall(r"^profile: (.+)$", demo.output, re.MULTILINE)[0])
    (token,) = re.findall(r'"bearerToken": "([^"]+)"', profile.read_text())
    assert token not in demo.output


@pytest.mark.component(CLIENT, SEAWEEDFS)
def test_the_printed_snippets_read_a_table_its_changes_and_a_table_on_s3_with_the_official_client(demo):
    require_environment()
    # Marks between them tell what each has printed.
    beginnings = ("import delta_sharing", "changes = ", "on_s3 = ")
    snippet = f"\nprint({MARK!r})\n".join(map(demo.paragraph, beginnings))
    result = subprocess.run(
        [PYTHON, "-c", snippet], capture_output=True, text=True, check=False, env=environment()
    )
    assert result.returncode == 0, result.stderr
    rows, changes, on_s3 = result.stdout.split(MARK)
    assert "[1000 rows x 4 columns]" in rows
    assert all(kind in changes for kind in ("insert", "update_preimage", "update_postimage", "delete"))
    assert "[1000 rows x 4 columns]" in on_s3


@pytest.mark.component(CURL)
def test_the_printed_curl_line_lists_the_tables(demo):
    line = demo.paragraph("curl -H")
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert '"ten_thousand_files"' in result.stdout


@pytest.mark.component(CURL, SEAWEEDFS)
def test_the_printed_curl_line_gets_keys_for_a_directory(demo):
    line = demo.paragraph("curl -X POST")
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    credentials = json.loads(result.stdout)["credentials"]
    assert credentials["location"] == "s3://lake/sales/orders"
    assert credentials["awsTempCredentials"]["sessionToken"]


@pytest.mark.component(BOTO3, SEAWEEDFS)
def test_the_printed_snippet_reads_a_directory_and_is_refused_at_its_neighbour(demo):
    snippet = demo.paragraph("import json, urllib.request, boto3")
    result = subprocess.run([sys.executable, "-"], input=snippet, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    open_line, closed_line = result.stdout.splitlines()
    assert re.fullmatch(r"sales/orders is open: \d+ bytes of its log", open_line)
    assert closed_line.startswith("sales/orders_archive is closed:")
    assert "AccessDenied" in closed_line


@pytest.mark.component(BOTO3, SEAWEEDFS)
def test_the_printed_snippet_can_be_pasted_into_an_interpreter(demo):
    # As a terminal does it: line by line, and the empty line behind it.
    snippet = demo.paragraph("import json, urllib.request, boto3") + "\n\n"
    result = subprocess.run(
        [sys.executable, "-i"], input=snippet, capture_output=True, text=True, check=False
    )
    assert "is open" in result.stdout
    assert "is closed" in result.stdout
    assert "Error:" not in result.stderr


@pytest.mark.component(SEAWEEDFS)
def test_the_printed_proof_is_one(demo):
    line = demo.paragraph(".venv/bin/sluice verify-storage", or_begins=str(SLUICE))
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "BREACH" not in result.stdout


def test_a_demo_without_s3_prints_the_other_snippets_only(first_run):
    assert "S3" not in first_run.demo.output
    assert first_run.demo.paragraph("import delta_sharing")
    assert first_run.demo.paragraph("curl -H")


def test_sigterm_stops_a_demo_quietly_with_status_0(first_run):
    assert first_run.status == 0
    assert "Traceback" not in first_run.rest


def test_make_takes_s3_out_by_a_variable():
    result = subprocess.run(
        ["make", "--dry-run", "run", "S3=0"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--no-s3" in result.stdout
    assert "requirements-demo" not in result.stdout


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("/metrics", "sluice_build_info"),
        ("/healthz", ""),
        ("/readyz", ""),
        ("/docs", "<html"),
    ],
)
def test_the_printed_addresses_answer(demo, ending, content):
    addresses = re.findall(r"http://[\w.:/-]+", demo.output)
    # Health is printed as one address and the other one's path.
    found = [url for url in addresses if url.endswith(ending)] or [
        url.replace("/healthz", ending) for url in addresses if url.endswith("/healthz")
    ]
    assert ending in demo.output
    with urllib.request.urlopen(found[0], timeout=60) as response:
        assert response.status == 200
        assert content in response.read().decode()


def test_ctrl_c_under_make_stops_it_without_a_word_of_failure(spare):
    with running(spare, "--no-s3", under_make=True) as demo:
        _, rest = demo.stop(signal.SIGINT, whole_group=True)
    assert "***" not in rest
    assert "Traceback" not in rest
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", demo.port))


@pytest.mark.component(SEAWEEDFS)
def test_terminating_make_stops_the_demo_and_its_store_too(spare):
    with running(spare, under_make=True) as demo:
        store = port_of_store(spare)
        socket.create_connection(("127.0.0.1", store)).close()
        # To make alone, which sends it on to the demo alone.
        _, rest = demo.stop(signal.SIGTERM)
    assert "***" not in rest
    for port in (demo.port, store):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_taken_port_is_said_in_words(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port()))
        other.listen()
        port = other.getsockname()[1]
        result = subprocess.run(
            command(tmp_path, port), capture_output=True, text=True, check=False, timeout=START_SECONDS
        )
    assert result.returncode not in (0, None)
    assert str(port) in result.stderr
    assert "--port" in result.stderr or "PORT=" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_demo_in_the_same_directory_is_refused_and_leaves_the_first_as_it_is(demo, state):
    kept = {name: (state / name).read_bytes() for name in ("sample.share", "server.yaml")}

    result = subprocess.run(
        command(state, free_port()), capture_output=True, text=True, check=False, timeout=START_SECONDS
    )

    assert result.returncode == 1
    assert f"a demo already runs from {state} (process {demo.process.pid}); stop it" in result.stderr
    assert kept == {name: (state / name).read_bytes() for name in kept}


def test_a_port_that_is_no_number_is_said_in_words(tmp_path):
    result = subprocess.run(
        [*make_command(tmp_path, 0), "PORT=abc"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "--port abc is not a port" in result.stderr
    assert "usage:" not in result.stderr


def test_make_clean_removes_what_installing_the_recipients_package_leaves(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    made = [tmp_path / "recipient" / name for name in ("build", "src/sluice_recipient.egg-info")]
    kept = tmp_path / "recipient" / "src" / "sluice_recipient"
    for directory in (*made, kept):
        directory.mkdir(parents=True)

    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)

    assert not [directory for directory in made if directory.exists()]
    assert kept.exists()


@pytest.mark.component(SEAWEEDFS)
def test_ctrl_c_stops_a_demo_and_its_store_quietly_with_status_0(demo, state):
    """The last test with the shared demo."""
    store = port_of_store(state)
    socket.create_connection(("127.0.0.1", store)).close()

    status, rest = demo.stop(signal.SIGINT, whole_group=True)

    assert status == 0
    assert "Traceback" not in rest
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", store))


def port_of_store(state: Path) -> int:
    """Return the port of the S3 store of a demo."""
    endpoint = re.search(r"endpoint: http://127\.0\.0\.1:(\d+)", (state / "server.yaml").read_text())
    assert endpoint is not None
    return int(endpoint[1])


def command(state: Path, port: int) -> list[str]:
    return [str(SLUICE), "demo", "--port", str(port), "--state", str(state)]


@contextmanager
def running(state: Path, *options: str, under_make: bool = False) -> Iterator[Demo]:
    """Run the demo until the block is left, which is entered when the demo is up."""
    port = free_port()
    with subprocess.Popen(
        make_command(state, port, *options) if under_make else [*command(state, port), *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output = read_greeting(process)
            yield Demo(process, port, output)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)


def make_command(state: Path, port: int, *options: str) -> list[str]:
    demo = f"DEMO={' '.join(['--state', str(state), *options])}"
    return ["make", "--no-print-directory", "run", f"PORT={port}", demo]


def read_greeting(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        # Its last line says how to stop it.
        if "Ctrl-C" in line:
            return "".join(lines)
    raise AssertionError(f"the demo ended early:\n{''.join(lines)}")
