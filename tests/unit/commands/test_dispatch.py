from __future__ import annotations

import pytest

from gateway.commands import COMMANDS, dispatch


def test_help_names_every_command_and_the_first_steps(capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["--help"], {})

    printed = capsys.readouterr().out
    assert left.value.code == 0
    assert all(name in printed for name in COMMANDS)
    assert "first steps" in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as left:
        dispatch([name, "--help"], {})

    _, help_ = COMMANDS[name]
    assert left.value.code == 0
    first_words = help_.split()[:3]
    assert " ".join(first_words).lower() in " ".join(capsys.readouterr().out.lower().split())


def test_no_command_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as left:
        dispatch([], {})

    assert left.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in COMMANDS)


def test_the_version_is_also_an_option(capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["--version"], {})

    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("sluice ")


def test_a_fault_that_shows_only_when_serving_has_its_line(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text(
        "recipients: [{name: a, identities: [{issuer: i, subject: s}]}]\n"
        f"stateDir: {tmp_path}\n"
        "storages:\n"
        "- name: lake\n"
        "  prefix: /lake\n"
        "  vendor: locl\n"
    )

    assert dispatch(["serve", "--config", str(file)], {}) == 2

    complaint = capsys.readouterr().err
    assert "line 6" in complaint
    assert "local" in complaint


def test_serve_without_a_configuration_is_an_error_that_names_it(capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(["serve"], {})

    assert left.value.code == 2
    assert "--config" in capsys.readouterr().err


def test_a_configuration_that_is_not_there_is_an_error_without_a_traceback(tmp_path, capsys):
    status = dispatch(["serve", "--config", str(tmp_path / "none.yaml")], {})

    assert status == 2
    assert "none.yaml" in capsys.readouterr().err


def test_on_import_is_called_before_the_command_runs(capsys):
    printed = []

    assert dispatch(["version"], {}, on_import=lambda: printed.append(capsys.readouterr().out)) == 0

    assert printed == [""]


def test_version_names_the_vendors(capsys):
    assert dispatch(["version"], {}) == 0

    assert "vendors: aws, azure, gcp, local, r2, s3\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "meant"),
    [("chek-config", "check-config"), ("revok", "revoke"), ("verify_storage", "verify-storage")],
)
def test_a_misspelt_command_is_answered_with_the_nearest(command, meant, capsys):
    assert dispatch([command, "server.yaml"], {}) == 2

    assert (
        f"there is no command {command!r}, see: sluice --help; did you mean {meant}?"
        in capsys.readouterr().err
    )


def test_a_command_like_no_other_is_answered_with_where_they_are_listed(capsys):
    assert dispatch(["frobnicate"], {}) == 2

    assert capsys.readouterr().err == "sluice: there is no command 'frobnicate', see: sluice --help\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "{}"],
        ["serve", "--config", "{}"],
        ["verify-storage", "{}"],
        ["verify-storage", "--storage", "a", "{}"],
        ["verify-storage", "{}", "--storage", "a"],
        ["revoke", "acme", "{}"],
        ["revoke", "--yes", "acme", "{}"],
        ["revoke", "acme", "--yes", "--config", "{}"],
    ],
)
def test_a_configuration_is_taken_with_and_without_its_option(arguments, tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("recipents: []\n")

    assert dispatch([word.format(file) for word in arguments], {}) == 2

    assert "did you mean recipients?" in capsys.readouterr().err


def test_a_token_takes_a_configuration_without_its_option(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("recipients: [{name: acme, identities: [{issuer: i, subject: s}]}]\n")

    assert dispatch(["token", "new", "--no-profile", "acme", str(file)], {}) == 0

    assert "recipients[0].tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve"], "the configuration is missing: give --config FILE"),
        (["revoke", "acme"], "the configuration is missing: give --config FILE"),
        (["serve", "a.yaml", "b.yaml"], "there is no argument a.yaml b.yaml"),
        (["serve", "--config", "a.yaml", "b.yaml"], "there is no argument b.yaml"),
        (["serve", "--confg", "a.yaml"], "there is no argument --confg a.yaml"),
        (["keys", "new", "a.yaml"], "there is no argument a.yaml"),
    ],
)
def test_what_no_argument_takes_is_an_error(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        dispatch(arguments, {})

    assert left.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "abc", "80.5", "", "²"])
def test_a_port_that_is_none_is_a_clear_error(port, tmp_path, capsys):
    state = tmp_path / "state"
    assert dispatch(["demo", "--port", port, "--state", str(state)], {}) == 1

    assert f"--port {port} is not a port" in capsys.readouterr().err
    assert not state.exists()


def test_serve_lists_faults_below_the_name_of_the_file(tmp_path, capsys):
    file = tmp_path / "server.yaml"
    file.write_text("recipents: []\nprot: 1\n")

    assert dispatch(["serve", str(file)], {}) == 2

    heading, *faults = capsys.readouterr().err.splitlines()
    assert heading == f"{file} has {len(faults)} faults:"
    assert len(faults) > 1
    assert all(fault.startswith("  ") for fault in faults)


@pytest.mark.parametrize("command", ["serve", "check-config"])
def test_the_help_of_a_command_tells_its_short_form_and_its_statuses(command, capsys):
    with pytest.raises(SystemExit):
        dispatch([command, "--help"], {})

    printed = capsys.readouterr().out
    assert f"`sluice {command} FILE`" in printed
    assert "exit status:" in printed


def test_the_help_shows_a_revocation_as_it_is_written(capsys):
    for arguments in (["--help"], ["revoke", "--help"]):
        with pytest.raises(SystemExit):
            dispatch(arguments, {})
        assert "sluice revoke RECIPIENT --config" in capsys.readouterr().out
