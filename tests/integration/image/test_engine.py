"""What stands in for an engine does with a small Dockerfile what an engine would."""

from __future__ import annotations

import subprocess

import pytest

from deploy.engine.build import Builder, BuildError
from deploy.engine.container import Container
from deploy.engine.dockerfile import parse
from tests.components import IMAGE

pytestmark = [pytest.mark.system, pytest.mark.component(IMAGE)]

DOCKERFILE = """
ARG WORD=default
FROM debian AS first
ARG WORD
ENV GREETING="hello ${WORD}"
WORKDIR /place
COPY a.txt folder ./
COPY a.txt renamed.txt
RUN echo "$GREETING" > said && rm a.txt && mkdir -p /opt/kept && echo kept > /opt/kept/file
FROM first AS second
COPY --from=first --chown=7:8 /opt/kept /copied
RUN rm /opt/kept/file
USER 9:9
ENTRYPOINT ["sh", "-c"]
CMD ["ls /place; cat /place/said; stat -c %u:%g /copied/file; ls /opt/kept; id -u"]
FROM first AS broken
RUN echo a reason >&2; exit 3
"""


@pytest.fixture(scope="module")
def place(image_folder, tmp_path_factory):
    return tmp_path_factory.mktemp("engine") / "place"


@pytest.fixture(scope="module")
def builder(place, tmp_path_factory):
    context = tmp_path_factory.mktemp("context")
    (context / "folder").mkdir(parents=True)
    for name in ("a.txt", "folder/b.txt", "folder/secret"):
        (context / name).write_text(name)
    (context / ".dockerignore").write_text("**/secret\n")
    return Builder(parse(DOCKERFILE, {"WORD": "given"}), context, place)


def test_instructions_come_to_the_tree_that_an_engine_would_make(builder, place):
    container = Container(image=builder.build("second"), root=place / "mnt")
    done = subprocess.run(container.command_line(), capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["b.txt", "renamed.txt", "said", "hello", "given", "7:8", "9"]


def test_a_step_that_fails_ends_the_build_and_says_why(builder):
    with pytest.raises(BuildError, match=r"(?s)exit 3 ended with 3:.*a reason"):
        builder.build("broken")


def test_a_stage_that_is_not_there_is_named(builder):
    with pytest.raises(BuildError, match="no stage third"):
        builder.build("third")


def test_the_machine_itself_is_not_written_to(builder):
    builder.build("second")
    done = subprocess.run(["ls", "-d", "/place/said", "/copied"], capture_output=True, text=True, check=False)
    assert done.stdout == ""
