from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config.environment import variables
from gateway.config.faults import ConfigError, Fault
from gateway.config.load import load, locate, read
from gateway.config.outline import outline
from gateway.config.schema import Config
from gateway.config.section import Section
from tests.growth import grows_linearly

MARKER = "hunter2hunter2hunter2"
ONE_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

REFERENCE = """
version: 1
shares:
- name: "share1"
  schemas:
  - name: "schema1"
    tables:
    - name: "table1"
      location: "s3a://bucket/table1"
      id: "00000000-0000-0000-0000-000000000000"
    - name: "table2"
      location: "wasbs://container@account.blob.core.windows.net/table2"
      historyShared: true
      startVersion: 1
authorization:
  bearerToken: 0123456789abcdef
host: "localhost"
port: 8080
endpoint: "/delta-sharing"
preSignedUrlTimeoutSeconds: 3600
deltaTableCacheSize: 10
stalenessAcceptable: false
evaluatePredicateHints: true
evaluateJsonPredicateHints: true
requestTimeoutSeconds: 30
queryTablePageSizeLimit: 10000
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "server.yaml"


def test_a_reference_servers_file_is_read_as_it_is(file):
    file.write_text(REFERENCE)
    loaded = load(file, {})
    first, second = loaded.config.shares[0].schemas[0].tables
    assert first.location == "s3a://bucket/table1"
    assert (second.history_shared, second.start_version) == (True, 1)
    assert (loaded.config.host, loaded.config.port) == ("localhost", 8080)
    assert loaded.config.request_timeout_seconds == 30
    assert loaded.config.authorization is not None
    assert loaded.config.authorization.bearer_token.get_secret_value() == "0123456789abcdef"
    assert [warning.split(":")[0] for warning in loaded.warnings] == [
        "deltaTableCacheSize",
        "stalenessAcceptable",
    ]
    assert loaded.config.evaluate_predicate_hints
    assert loaded.config.query_table_page_size_limit == 10000


def test_our_own_keys_extend_it(file):
    file.write_text(
        REFERENCE
        + f"""
storages:
- {{name: lake, prefix: s3://bucket, vendor: aws, options: {{path: true, retries: 3, region: eu-1, id: '7'}}}}
- {{name: blob, prefix: abfss://container@account.dfs.core.windows.net/, vendor: azure}}
recipients:
- name: acme
  tokens:
  - hash: sha256:{"a" * 64}
    expires: 2030-01-31
  shares: [SHARE1]
limits: {{rate: {{requestsPerSecond: 5, burst: 10}}}}
snapshots: {{memory: 64MiB}}
"""
    )
    config = load(file, {}).config
    assert config.storages is not None
    assert config.storages[0].options == {"path": True, "retries": 3, "region": "eu-1", "id": "7"}
    assert config.recipients[0].tokens[0].expires == datetime(2030, 1, 31, tzinfo=UTC)
    assert (config.limits.rate.burst, config.snapshots.memory) == (10, 64 * 1024 * 1024)


def test_every_fault_is_reported_at_once_with_its_place(file):
    file.write_text(
        """\
version: 1
prot: 8080
shares:
- name: a b
  schemas:
  - name: s
    tables:
    - name: t
- name: c
  comment: []
recipients:
- name: x
  tkens: []
  shares: [nothing]
grace: never
endpoint: no-slash
"""
    )
    with pytest.raises(ConfigError) as caught:
        load(file, {"SLUICE_PORTT": "1", "SLUICE_GRACE": "soon"})
    assert [(fault.line, fault.path, fault.suggestion) for fault in caught.value.faults] == [
        (2, "prot", "port"),
        (4, "shares[0].name", ""),
        (8, "shares[0].schemas[0].tables[0].location", ""),
        (10, "shares[1].comment", ""),
        (13, "recipients[0].tkens", "tokens"),
        (16, "endpoint", ""),
        (None, "SLUICE_PORTT", "SLUICE_PORT"),
        (None, "SLUICE_GRACE", ""),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xff", "is not UTF-8 text"),
        (b"[a", "not valid YAML"),
        (b"- a", "must be a mapping of keys to values (found a list of 1)"),
        (b"", "recipients: nobody could read anything"),
    ],
)
def test_what_cannot_be_read_is_one_clear_fault(file, content, message):
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert len(caught.value.faults) == 1
    assert message in str(caught.value)


def test_a_byte_order_mark_does_no_harm(file):
    file.write_bytes(b"\xef\xbb\xbfallowAnonymous: true")
    assert load(file, {}).config.allow_anonymous


def test_json_that_is_no_yaml_has_faults_too_though_without_lines(file):
    file.write_text('{"port": "x\x7f"}')
    (fault,) = [fault for fault in read(file, {}).faults if fault.path == "port"]
    assert fault.line is None


def test_the_environment_is_laid_over_the_file_and_named_files_over_both(file, tmp_path):
    (tmp_path / "token").write_text("from-a-named-file\n")
    file.write_text(REFERENCE)
    env = {
        "SLUICE_PORT": "9000",
        "SLUICE_HTTP_TRUSTED_PROXIES": "10.0.0.0/8, ::1",
        "SLUICE_AUTHORIZATION_BEARER_TOKEN": "from-a-variable",
        "SLUICE_AUTHORIZATION_BEARER_TOKEN_FILE": str(tmp_path / "token"),
    }
    config = load(file, env).config
    assert config.port == 9000
    assert config.http.trusted_proxies == ("10.0.0.0/8", "::1")
    assert config.authorization is not None
    assert config.authorization.bearer_token.get_secret_value() == "from-a-named-file"


def test_off_is_a_word_and_not_a_boolean(tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text(f"{REFERENCE}\nhttp: {{compression: off}}\n")
    assert load(file, {}).config.http.compression == "off"
    assert load(file, {"SLUICE_HTTP_COMPRESSION": "auto"}).config.http.compression == "auto"


@pytest.mark.parametrize(
    ("env", "text", "directory"),
    [
        ({"HOME": "/home/a"}, "", "/home/a/.local/state/sluice"),
        ({"HOME": "/home/a", "XDG_STATE_HOME": "/state"}, "", "/state/sluice"),
        ({}, "", "/var/lib/sluice"),
        ({"HOME": "/home/a", "SLUICE_STATE_DIR": "/b"}, "stateDir: /a", "/b"),
        ({"HOME": "/home/a"}, "stateDir: /a", "/a"),
    ],
)
def test_there_is_always_a_state_directory(file, env, text, directory):
    file.write_text(f"allowAnonymous: true\n{text}")
    assert load(file, env).config.state_dir == directory


def test_a_draft_shows_what_can_be_understood_of_a_faulty_file(file):
    file.write_text("publicUrl: https://a.example\nport: x\nrecipients: [{name: a}]")
    draft = read(file, {})
    assert {fault.path for fault in draft.faults} == {"port", "recipients"}
    assert draft.config is not None
    assert draft.config.public_url == "https://a.example"
    assert draft.config.recipients[0].name == "a"


def test_faults_found_later_get_their_lines(file):
    file.write_text("a: 1\nstorages:\n- name: x\n  vendor: y\n  options:\n    a: {b c: 1}\n")
    lines = {
        "storages[0].vendor": 4,
        "storages[0].options.a['b c']": 6,
        # What is missing stands nowhere itself.
        "storages[0].options.b[2].c": 5,
        "storages[0].options.a['d e'].f": 6,
        "storages[1].prefix": 2,
        "elsewhere": None,
        "SLUICE_PORT": None,
        "": None,
    }
    faults = [Fault(path=path, message="x") for path in lines]
    assert [fault.line for fault in locate(faults, file)] == list(lines.values())


def test_what_is_broken_is_remembered(file):
    file.write_text(
        "port: x\nallowAnonymous: true\nstorages: [{name: a, prefix: 5, vendor: v}]\nmetrics: {listen: y}"
    )
    broken = read(file, {}).broken
    assert not broken.spares(("port",))
    # Of a wrong form, but understood.
    assert broken.spares(("metrics", "listen"))


def test_a_template_repeated_in_every_table_is_warned_of_once(file):
    tables = "\n".join(f"    - {{name: t{n}, location: /t{n}, owner: x}}" for n in range(50))
    file.write_text(
        f"allowAnonymous: true\nshares:\n- name: s\n  schemas:\n  - name: c\n    tables:\n{tables}"
    )
    assert load(file, {}).warnings == (
        "shares[0].schemas[0].tables[0].owner: is not a known key and is ignored (and at 49 more places)",
    )


@pytest.mark.slow
def test_a_hundred_thousand_tables_load_in_linear_time(file):
    def load_tables(number: int) -> None:
        lines = ["allowAnonymous: true", "storages: [{name: lake, prefix: s3://b/, vendor: aws}]", "shares:"]
        for share in range(10):
            lines += [f"- name: share{share}", "  schemas:", "  - name: schema", "    tables:"]
            for table in range(number // 10):
                lines += [
                    f"    - name: table{table}",
                    f"      location: s3://b/{share}/{table}",
                    f"      id: {share}-{table}",
                ]
        file.write_text("\n".join(lines))
        config = load(file, {}).config
        assert sum(len(schema.tables) for share in config.shares for schema in share.schemas) == number

    assert grows_linearly(load_tables, 100_000)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["url", "dir", "*", "edge", "s3://b/a", "/a", "30s", "1MiB", "127.0.0.1:1", "a", "A", MARKER]
    ),
    st.just({}),
    st.just([]),
)


def sections(section: type[Section]) -> st.SearchStrategy[object]:
    """Return data for a section, some of it as it should be."""
    keys = {}
    for entry in outline(section).values():
        inner = sections(entry.section) if entry.section else LEAVES
        keys[entry.key] = LEAVES | (st.lists(inner, max_size=2) if entry.is_list else inner)
    known = st.fixed_dictionaries({}, optional=keys)
    return (
        LEAVES
        | known
        | st.builds(lambda a, b: {**a, **b}, st.dictionaries(st.text(max_size=6), LEAVES, max_size=1), known)
    )


@ONE_FILE
@given(data=sections(Config))
def test_no_content_raises_anything_but_config_error(file, data):
    file.write_text(json.dumps(data))
    try:
        load(file, {})
    except ConfigError as exc:
        assert exc.faults  # noqa: PT017 -- most data is faulty, some is not


@ONE_FILE
@given(
    content=st.binary()
    | st.text().map(str.encode)
    | st.just(b"port: ").flatmap(lambda b: st.binary().map(b.__add__))
)
def test_no_bytes_raise_anything_but_config_error(file, content):
    file.write_bytes(content)
    try:
        load(file, {})
    except ConfigError as exc:
        assert exc.faults  # noqa: PT017 -- as above


@ONE_FILE
@given(
    env=st.dictionaries(
        st.sampled_from(sorted(variables())) | st.text().map("SLUICE_".__add__), st.text(), max_size=4
    )
)
def test_no_environment_raises_anything_but_config_error(file, env):
    file.write_text("allowAnonymous: true")
    try:
        load(file, env)
    except ConfigError as exc:
        assert exc.faults  # noqa: PT017 -- as above


SECRET_PLACES = [
    {"authorization": MARKER},
    {"authorization": [MARKER]},
    {"authorization": {"bearerToken": [MARKER]}},
    {"authorization": {"bearerToken": f"{MARKER} with a space"}},
    {"authorization": {"baererToken": MARKER, "other": MARKER}},
    {"keys": MARKER},
    {"keys": {"current": MARKER}},
    {"keys": {"current": {"secret": {"x": MARKER}, "sealing": MARKER, "grantPrivateKey": MARKER}}},
    {"keys": {"current": {"secrt": MARKER}, "previous": {"refresh": [MARKER]}}},
    {"recipients": [{"name": "a", "tokens": [MARKER]}]},
    {"recipients": [{"name": "a", "tokens": MARKER}]},
    {"recipients": [{"name": "a", "tokens": [{"hash": MARKER}]}]},
    {"recipients": [{"name": "a", "token": MARKER}]},
    {"storages": [{"name": "a", "prefix": f"s3://k:{MARKER}@b/", "vendor": "aws", "options": MARKER}]},
    {"storages": [{"name": "a", "prefix": "/a", "vendor": "aws", "secretAccessKey": MARKER}]},
    {"shares": [{"name": "a", "schemas": [{"name": "b", "tables": [{"name": "c", "location": f"ftp://u:{MARKER}@h/"}]}]}]},
    {"publicUrl": f"https://user:{MARKER}@a.example/"},
    {"password": MARKER},
    {"port": f"slc_{MARKER}"},
]  # fmt: skip


@pytest.mark.parametrize("data", SECRET_PLACES, ids=lambda data: next(iter(data)))
def test_no_fault_or_warning_shows_a_secret(file, data):
    file.write_text(json.dumps(data))
    draft = read(file, {})
    assert MARKER not in "\n".join([str(fault) for fault in draft.faults] + list(draft.warnings))
    assert draft.faults


SETTABLE = [
    ("SLUICE_PORT", "port", "81"),
    ("SLUICE_PUBLIC_URL", "publicUrl", "https://a.example/b"),
    ("SLUICE_ALLOW_ANONYMOUS", "allowAnonymous", "true"),
    ("SLUICE_GRACE", "grace", "3m"),
]


@pytest.mark.parametrize(("variable", "key", "text"), SETTABLE)
def test_a_variable_says_the_same_as_its_key(file, variable, key, text):
    file.write_text(f"{key}: {text}")
    in_file = read(file, {}).config
    file.write_text("")
    assert read(file, {variable: text}).config == in_file


def test_only_the_named_files_are_read(file, monkeypatch):
    opened = []
    original = Path.open

    def noting(path, *args, **kwargs):
        opened.append(path)
        return original(path, *args, **kwargs)

    file.write_text("allowAnonymous: true")
    monkeypatch.setattr(Path, "open", noting)
    load(file, {"HOME": "/home/a", "SLUICE_PORT": "1"})
    assert opened == [file]
