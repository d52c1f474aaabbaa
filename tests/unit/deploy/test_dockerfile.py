"""How the Dockerfile is read, and the rules that ours keeps."""

from __future__ import annotations

import re

import pytest

from deploy.engine.context import is_sent, read_rules
from deploy.engine.dockerfile import DockerfileError, expand, parse
from tests.cases import each_case
from tests.repository import ROOT

TEXT = (ROOT / "deploy" / "image" / "Dockerfile").read_text()
OURS = parse(TEXT)
RULES = read_rules((ROOT / ".dockerignore").read_text())
STAGES = [stage.name for stage in OURS.stages]
FINAL = ["gateway", "pipeline"]


def instructions(*keywords):
    for stage in OURS.stages:
        for instruction in stage.instructions:
            if instruction.keyword in keywords:
                yield stage, instruction


def lineage(name):
    """Return the instructions of a stage and of those that it is made from, in order."""
    stage = OURS.stage(name)
    return [*lineage(stage.base), *stage.instructions] if stage else []


def test_stages_and_their_instructions_are_read_with_flags_and_comments_between_lines():
    text = (
        "# syntax=x\nARG BASE=a:1\nFROM ${BASE} AS one\nRUN --mount=type=cache,target=/c first \\\n"
        "    # why\n    && second\nFROM one\nCOPY --from=one --chown=0:0 /a /b\n"
    )
    one, two = parse(text, {"BASE": "b:2", "OTHER": "x"}).stages
    assert (one.name, one.base, two.name, two.base) == ("one", "b:2", "1", "one")
    (run,) = one.instructions
    assert (run.line, run.text, run.flags) == (4, "first && second", (("mount", "type=cache,target=/c"),))
    (copy,) = two.instructions
    assert (copy.flag("from"), copy.flag("chown"), copy.words()) == ("one", "0:0", ["/a", "/b"])


@each_case(
    ("text", "said"),
    [
        ("FROM a\nADD x y\n", "line 2: ADD"),
        ("RUN x\n", "line 1: RUN before the first FROM"),
        ("FROM a AS b AS c\n", "line 1: FROM"),
        ("FROM a\nRUN x \\\n", "line 2: the instruction does not end"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text, said):
    with pytest.raises(DockerfileError, match=re.escape(said)):
        parse(text)


def test_variables_are_put_in_and_unknown_ones_are_empty():
    assert expand("${A}-$B-${C}", {"A": "1", "B": "2"}) == "1-2-"


def test_the_base_is_pinned_to_a_patch_of_python_and_a_release_of_debian():
    assert re.fullmatch(
        r"python:3\.\d+\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", OURS.arguments["PYTHON_IMAGE"]
    )
    foreign = {stage.base for stage in OURS.stages if stage.base not in STAGES}
    assert foreign == {OURS.arguments["PYTHON_IMAGE"]}


def test_the_gateway_is_what_is_built_when_no_target_is_named():
    assert STAGES[-1] == "gateway"


@pytest.mark.parametrize("name", FINAL)
def test_an_image_ends_as_a_user_by_number_who_is_not_root(name):
    users = [entry.text for entry in lineage(name) if entry.keyword == "USER"]
    assert users == ["10001:10001"]
    after = lineage(name)[[entry.keyword for entry in lineage(name)].index("USER") + 1 :]
    assert {entry.keyword for entry in after} <= {"CMD"}


@pytest.mark.parametrize("name", FINAL)
def test_an_image_says_how_it_is_started_stopped_and_found_healthy(name):
    last = {entry.keyword: entry for entry in lineage(name)}
    assert last["ENTRYPOINT"].words() == ["tini", "-s", "--", "sluice"]
    assert last["CMD"].is_exec
    assert last["STOPSIGNAL"].text == "SIGTERM"
    assert last["HEALTHCHECK"].text == 'CMD ["sluice", "health"]'


@pytest.mark.parametrize("name", FINAL)
def test_what_an_image_is_started_with_is_installed_in_it(name):
    runs = " ".join(entry.text for entry in lineage(name) if entry.keyword == "RUN")
    assert "--no-install-recommends tini " in runs


@pytest.mark.parametrize("name", FINAL)
def test_what_builds_an_image_does_not_stay_in_it(name):
    runs = " ".join(entry.text for entry in lineage(name) if entry.keyword == "RUN")
    assert not re.search(r"\b(pip|maven|binutils|gcc|curl|git)\b", runs)


def test_apt_installs_no_more_than_asked_and_leaves_no_lists():
    for _, run in instructions("RUN"):
        if "apt-get" in run.text:
            assert "--no-install-recommends" in run.text
            assert run.text.endswith("rm -rf /var/lib/apt/lists/*")


def test_packages_are_installed_by_their_hashes_and_never_otherwise():
    script = (ROOT / "deploy" / "image" / "install.sh").read_text()
    installs = [line for line in script.splitlines() if line.strip().startswith("pip_into ")]
    assert len(installs) == 4
    own = [line for line in installs if "--require-hashes" not in line]
    assert ["--no-build-isolation" in line for line in own] == [True]
    assert "--no-deps" in script


def test_no_argument_or_variable_holds_a_secret():
    for _, entry in instructions("ARG", "ENV", "LABEL"):
        assert not re.search(
            r"(?i)secret|token|password|passwd|credential(?!s for)|api_?key", entry.text.split("=")[0]
        )


@pytest.mark.parametrize("stage", ["base", *FINAL])
def test_what_is_copied_into_an_image_is_roots(stage):
    copies = [entry for own, entry in instructions("COPY") if own.name == stage]
    assert copies
    assert all(entry.flag("chown") == "0:0" for entry in copies)


def test_everything_that_is_copied_exists_and_reaches_the_build():
    for _, copy in instructions("COPY"):
        *sources, _target = copy.words()
        if stage := copy.flag("from"):
            assert stage in STAGES
            continue
        for source in sources:
            assert (ROOT / source).exists(), source
            inner = source if (ROOT / source).is_file() else f"{source}/__init__.py"
            assert is_sent(inner, RULES), source


def test_every_script_that_a_step_calls_was_copied_before():
    copied: dict[str, set[str]] = {}
    for stage, entry in instructions("COPY", "RUN"):
        known = copied.setdefault(stage.name, set(copied.get(stage.base, ())))
        if entry.keyword == "COPY":
            known |= {word.rsplit("/", 1)[-1] for word in entry.words()}
        else:
            for script in re.findall(r"[\w-]+\.(?:sh|py|txt)\b", entry.text):
                assert script in known, script


def test_the_version_in_the_labels_is_the_projects():
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert version
    assert f"ARG VERSION={version[1]}\n" in TEXT
