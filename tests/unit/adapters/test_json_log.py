from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.json_log import JsonFormatter, configure_logging, redact
from gateway.rpc.metadata import current_request_id
from tests.cases import each_case

TOKENS = st.text(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/-", min_size=20, max_size=80
)
PLACES = st.sampled_from(
    [
        "Bearer {}",
        "authorization: bearer {}",
        "{{'Authorization': 'Bearer {}'}}",
        '{{"bearerToken": "{}", "endpoint": "https://example.com"}}',
        "{{'access_token': '{}'}}",
        "client_secret={}&grant_type=client_credentials",
        "GET /files/a?sp=r&sig={} HTTP/1.1",
        "https://bucket.s3.amazonaws.com/a?X-Amz-Date=1&X-Amz-Signature={}&x=1",
        "https://bucket.s3.amazonaws.com/a?X-Amz-Security-Token={}",
        "https://storage.googleapis.com/a?X-Goog-Signature={}",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\n{}",
        "password: {}",
    ]
)


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("sluice.test", logging.WARNING, __file__, 1, message, args, None)
    vars(made).update(extra)
    return made


def formatted(message: str, *args: object, **extra: object) -> dict[str, object]:
    entry: dict[str, object] = json.loads(JsonFormatter().format(record(message, *args, **extra)))
    return entry


def test_an_entry_has_time_level_logger_message_and_request_id():
    made = record("took %d ms", 7)
    made.created = 1794830400.25
    assert json.loads(JsonFormatter().format(made)) == {
        "ts": "2026-11-16T12:00:00.250Z",
        "level": "warning",
        "logger": "sluice.test",
        "message": "took 7 ms",
        "request_id": "",
    }


def test_the_request_id_is_the_current_one():
    token = current_request_id.set("req-1")
    try:
        assert formatted("hello")["request_id"] == "req-1"
    finally:
        current_request_id.reset(token)


def test_extra_fields_keep_their_types():
    entry = formatted(
        "hello", files=3, ratio=0.5, ok=True, nothing=None, names=["a", "b"], where={"share": "s"}
    )
    assert entry["files"] == 3
    assert entry["ratio"] == 0.5
    assert entry["ok"] is True
    assert entry["nothing"] is None
    assert entry["names"] == ["a", "b"]
    assert entry["where"] == {"share": "s"}


def test_an_extra_field_cannot_pose_as_one_of_ours():
    entry = formatted("hello", level="debug", request_id="forged")
    assert entry["level"] == "warning"
    assert entry["request_id"] == ""
    assert entry["request_id_"] == "forged"


def test_values_that_json_does_not_know_become_text():
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no")

    entry = formatted("hello", ratio=float("nan"), path=io.StringIO, odd=Unprintable())
    assert entry["ratio"] == "nan"
    assert entry["odd"] == "<Unprintable>"


def test_values_that_contain_themselves_come_to_an_end():
    loop: list[object] = []
    loop.append(loop)
    assert formatted("hello", loop=loop)["loop"]


def test_an_exception_is_one_field():
    try:
        raise ValueError("went wrong")  # noqa: TRY301 -- the traceback is what is tested
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "ValueError: went wrong" in json.loads(line)["exception"]


def test_arguments_that_do_not_fit_cost_only_themselves():
    assert formatted("%d files", "many")["message"] == "%d files (its arguments do not fit)"


def test_a_long_message_is_cut():
    assert len(str(formatted("x" * 1_000_000)["message"])) < 20_000


@given(st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_whatever_is_logged_is_one_line_of_ascii(message, where):
    line = JsonFormatter().format(record("%s", message, where=where))
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line)["logger"] == "sluice.test"


@given(TOKENS, PLACES)
def test_a_secret_in_a_known_place_never_appears(token, place):
    text = place.format(token)
    error = ValueError(text)
    made = record("%s", text, field=text, nested={"deep": [text]}, error=error)
    made.exc_info = (ValueError, error, None)
    made.stack_info = text
    assert token not in JsonFormatter().format(made)


@given(st.from_regex(r"eyJ[A-Za-z0-9_-]{10,50}\.[A-Za-z0-9_-]{10,80}\.[A-Za-z0-9_-]{20,80}", fullmatch=True))
def test_a_jwt_never_appears_wherever_it_stands(jwt):
    line = JsonFormatter().format(record("grant %s was refused", jwt, grant=jwt))
    assert not any(part in line for part in jwt.split("."))


@given(st.from_regex(r"slc_[A-Za-z0-9_-]{43}", fullmatch=True))
def test_a_token_of_ours_never_appears_wherever_it_stands(token):
    assert token not in JsonFormatter().format(record("refused %s", token, value=token))


@given(
    TOKENS, st.sampled_from(["token", "bearer_token", "clientSecret", "Authorization", "password", "api-key"])
)
def test_a_field_with_a_secret_name_never_shows_its_value(token, name):
    line = JsonFormatter().format(record("hello", **{name: token, "nested": {name: [token]}}))
    assert token not in line


@each_case(
    "text",
    [
        "table sales.q1.orders not found",
        "GET /delta-sharing/shares/sales/all-tables?maxResults=5 200",
        "part-00000-591723a8-6a27-4240-a90e-57426f4736d2.c000.snappy.parquet",
        "the token has expired",
        "the bearer token is missing, unknown or expired",
        "use bearer authentication, please",
        "signature does not match",
        "generation 4f6c1f7d3fb14b66a4d5a0b5f2a0c8d1",
    ],
)
def test_what_is_no_secret_stays_readable(text):
    assert redact(text) == text


def test_the_rest_of_a_signed_url_stays_readable():
    url = "https://h/files/t/a.parquet?sp=r&sdd=1&se=99&kid=k1&sig=AAAA"
    assert redact(url) == "https://h/files/t/a.parquet?sp=r&sdd=1&se=99&kid=k1&sig=[redacted]"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in list(root.manager.loggerDict)}
    yield root
    for name in list(root.manager.loggerDict):
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_configured_logs_go_to_the_stream_from_the_level_up(root_logger):
    stream = io.StringIO()
    configure_logging("info", stream)
    logging.getLogger("a.b").debug("silent")
    logging.getLogger("a.b").info("said")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["said"]


def test_warnings_are_logged(root_logger):
    stream = io.StringIO()
    configure_logging("warning", stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    assert "old ways" in json.loads(stream.getvalue())["message"]


def test_configuring_again_does_not_double_the_lines(root_logger):
    stream = io.StringIO()
    configure_logging("info", stream)
    configure_logging("info", stream)
    logging.getLogger("a").info("once")
    assert len(stream.getvalue().splitlines()) == 1


@pytest.mark.parametrize("name", ["botocore.parsers", "azure.core.pipeline", "redis", "urllib3"])
def test_sdks_do_not_tell_at_debug_level_what_token_services_answered(root_logger, name):
    stream = io.StringIO()
    configure_logging("debug", stream)

    logging.getLogger(name).debug("<SecretAccessKey>wJalrXUtnFEMI</SecretAccessKey>")
    logging.getLogger(name).warning("<SecretAccessKey>wJalrXUtnFEMI</SecretAccessKey>")

    assert "wJalrXUtnFEMI" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 1
