from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import stat
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from gateway.commands import token
from gateway.config.faults import ConfigError
from gateway.config.load import load

ENDPOINT = "https://sharing.example.com/delta-sharing"


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_one(*arguments) -> str:
        parser = argparse.ArgumentParser()
        token.configure(parser)
        assert token.run(parser.parse_args(arguments), {}) == 0
        out: str = capsys.readouterr().out
        return out

    return run_one


def token_in(text: str) -> str:
    (found,) = set(re.findall(r"slc_[A-Za-z0-9_-]+", text))
    return str(found)


def lines_in(text: str) -> str:
    """Return what is to be pasted."""
    return "\n".join(re.findall(r"^  [- ] .*$", text, re.MULTILINE))


def snippet_in(text: str) -> Any:
    return yaml.safe_load(lines_in(text))


def profile_of(file) -> Any:
    return json.loads(file.read_text())


def test_a_token_has_256_random_bits(run):
    tokens = {token_in(run("new", "acme", "--no-profile")) for _ in range(10)}
    assert len(tokens) == 10
    assert {len(one) for one in tokens} == {len("slc_") + 43}


def test_a_profile_has_what_a_client_needs(run, tmp_path):
    text = run("new", "acme", "--endpoint", f"{ENDPOINT}/", "--expires", "2100-01-31")
    file = tmp_path / "acme.share"
    assert profile_of(file) == {
        "shareCredentialsVersion": 1,
        "endpoint": ENDPOINT,
        "bearerToken": token_in(text),
        "expirationTime": "2100-01-31T00:00:00Z",
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "acme.share" in text


def test_a_token_without_an_end_has_no_expiration_time(run, tmp_path):
    text = run("new", "acme", "--endpoint", ENDPOINT)
    assert "expirationTime" not in profile_of(tmp_path / "acme.share")
    assert "expires" not in text


def test_what_is_to_be_pasted_makes_the_token_valid(run, tmp_path):
    text = run("new", "acme", "--endpoint", ENDPOINT, "--expires", "90d")
    (recipient,) = snippet_in(text)
    recipient["shares"] = []
    file = tmp_path / "server.yaml"
    file.write_text(yaml.safe_dump({"recipients": [recipient]}))
    (known,) = load(file, {}).config.recipients
    assert known.name == "acme"
    assert known.tokens[0].hash == f"sha256:{hashlib.sha256(token_in(text).encode()).hexdigest()}"
    assert known.tokens[0].expires is not None
    left = known.tokens[0].expires - datetime.now(UTC)
    assert timedelta(days=89) < left <= timedelta(days=90)


def test_a_known_recipient_gets_one_more_token_for_its_entry(run, tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text(f"publicUrl: {ENDPOINT}\nrecipients: [{{name: other}}, {{name: Acme}}]")
    text = run("new", "acme", "--config", str(file))
    assert "recipients[1].tokens" in text
    (entry,) = snippet_in(text)
    assert list(entry) == ["hash"]
    assert profile_of(tmp_path / "acme.share")["endpoint"] == ENDPOINT


def test_what_is_to_be_pasted_fits_below_tokens_as_it_is(run, tmp_path):
    file = tmp_path / "server.yaml"
    before = "recipients:\n  - name: acme\n    tokens:\n"
    file.write_text(before)
    text = run("new", "acme", "--config", str(file), "--no-profile", "--expires", "90d")
    file.write_text(before + lines_in(text))
    (known,) = load(file, {}).config.recipients
    assert len(known.tokens) == 1


@pytest.mark.parametrize(
    ("text", "warned"),
    [("recipients: [{name: acme}]", False), ("recipients: [{name: acme}]\nport: none", True)],
)
def test_faults_are_told_of_unless_the_token_is_all_that_is_missing(capsys, tmp_path, text, warned):
    (tmp_path / "server.yaml").write_text(text)
    parser = argparse.ArgumentParser()
    token.configure(parser)
    arguments = parser.parse_args(["new", "acme", "--config", str(tmp_path / "server.yaml"), "--no-profile"])
    assert token.run(arguments, {}) == 0
    assert ("has faults" in capsys.readouterr().err) is warned


def test_the_endpoint_given_wins_over_that_of_the_configuration(run, tmp_path):
    (tmp_path / "server.yaml").write_text(f"publicUrl: {ENDPOINT}\nallowAnonymous: true")
    run("new", "acme", "--config", "server.yaml", "--endpoint", "http://localhost:1")
    assert profile_of(tmp_path / "acme.share")["endpoint"] == "http://localhost:1"


@pytest.mark.parametrize("arguments", [(), ("--config", "server.yaml")])
def test_without_an_endpoint_there_is_a_clear_error(run, tmp_path, arguments):
    (tmp_path / "server.yaml").write_text("allowAnonymous: true")
    with pytest.raises(ConfigError, match=r"set publicUrl in the configuration .* or give --endpoint URL"):
        run("new", "acme", *arguments)
    assert not (tmp_path / "acme.share").exists()


@pytest.mark.parametrize("endpoint", ["sharing.example.com", "https://a/?b", "ftp://a"])
def test_an_endpoint_that_is_none_is_refused(run, endpoint):
    with pytest.raises(ConfigError, match="--endpoint must "):
        run("new", "acme", "--endpoint", endpoint)


def test_a_profile_is_replaced_only_by_force(run, tmp_path):
    file = tmp_path / "x.share"
    file.write_text("precious")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="exists; give another --profile, or --force"):
        run("new", "acme", "--endpoint", ENDPOINT, "--profile", str(file))
    assert file.read_text() == "precious"
    text = run("new", "acme", "--endpoint", ENDPOINT, "--profile", str(file), "--force")
    assert profile_of(file)["bearerToken"] == token_in(text)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_profile_that_cannot_be_written_shows_no_token(run, capsys, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        run("new", "acme", "--endpoint", ENDPOINT, "--profile", str(tmp_path / "missing" / "a.share"))
    assert "slc_" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("recipient", "name"),
    [("acme", "acme.share"), ("../../etc/x y", "etc-x-y.share"), ("…", "recipient.share"), (".a", "a.share")],
)
def test_a_profile_is_named_after_its_recipient_and_stays_here(run, tmp_path, recipient, name):
    run("new", recipient, "--endpoint", ENDPOINT)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("expires", ["30", "soon", "-1d", "2030-13-01", ""])
def test_an_end_that_is_none_is_refused(run, capsys, expires):
    with pytest.raises(SystemExit):
        run("new", "acme", "--no-profile", f"--expires={expires}")
    assert "neither a span such as 90d nor a date" in capsys.readouterr().err


def test_an_end_in_the_past_is_refused(run):
    with pytest.raises(ConfigError, match="in the past"):
        run("new", "acme", "--no-profile", "--expires", "2020-01-01")


def test_a_faulty_configuration_is_mentioned_and_used_as_far_as_it_goes(run, capsys, tmp_path):
    (tmp_path / "server.yaml").write_text(f"publicUrl: {ENDPOINT}\nport: x")
    parser = argparse.ArgumentParser()
    token.configure(parser)
    token.run(parser.parse_args(["new", "acme", "--config", "server.yaml"]), {})
    assert "sluice check-config --config server.yaml" in capsys.readouterr().err
    assert profile_of(tmp_path / "acme.share")["endpoint"] == ENDPOINT


def test_the_hash_of_a_token_is_that_of_its_bytes(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hunter2\n"))
    text = run("hash")
    assert text == f"- hash: sha256:{hashlib.sha256(b'hunter2').hexdigest()}\n"


@pytest.mark.parametrize("text", ["", "\n", "two words", "one\ntwo", "tökén"])
def test_what_is_no_token_has_no_hash(run, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    with pytest.raises(ConfigError, match="give one token on standard input"):
        run("hash")


NEAR = "recipients: [{name: acme, identities: [{issuer: i, subject: s}]}]\npublicUrl: https://a.example\n"


@pytest.mark.parametrize(("name", "meant"), [("acmee", "acme"), ("Amce", "acme")])
def test_a_name_that_is_almost_a_known_one_is_pointed_out(name, meant, tmp_path, capsys):
    (tmp_path / "server.yaml").write_text(NEAR)
    assert new_with_config(name, tmp_path) == 0

    shown = capsys.readouterr()
    assert f"no recipient {name!r} yet; did you mean {meant}?" in shown.err
    # It may be another one nevertheless.
    assert f"name: {name}" in shown.out


@pytest.mark.parametrize("name", ["acme", "ACME", "globex"])
def test_a_known_name_and_one_like_no_other_are_taken_as_they_are(name, tmp_path, capsys):
    (tmp_path / "server.yaml").write_text(NEAR)
    assert new_with_config(name, tmp_path) == 0

    assert "did you mean" not in capsys.readouterr().err


def new_with_config(name: str, directory) -> int:
    parser = argparse.ArgumentParser()
    token.configure(parser)
    arguments = ["new", name, "--config", str(directory / "server.yaml"), "--no-profile"]
    return token.run(parser.parse_args(arguments), {})
