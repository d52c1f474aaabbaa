"""A runner without Spark: does what its plan says, by the protocol of the real one."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def main() -> None:
    # As the real one does: it must not outlive who asked.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        return
    for line in sys.stdin:
        request = json.loads(line)
        _serve(request["id"], request)


def _serve(request_id: str, request: dict[str, Any]) -> None:
    plan = request["plan"]
    if text := plan.get("complain"):
        sys.stderr.write(text.format(**request["access"]) + "\n")
        sys.stderr.flush()
    if "raw" in plan:
        sys.stdout.write(plan["raw"])
        sys.stdout.flush()
    if "child" in plan:
        child = subprocess.Popen(["sleep", "600"])
        Path(plan["child"]).write_text(str(child.pid))
    if "exit" in plan:
        os._exit(plan["exit"])
    _say(request_id, event="progress", message="half", done=1, total=2)
    time.sleep(plan.get("sleep", 0))
    while "until" in plan and not Path(plan["until"]).exists():
        time.sleep(0.02)
    if "append" in plan:
        with Path(plan["append"]).open("a") as file:
            file.write(f"{plan['line']}\n")
    if "error" in plan:
        _say(
            request_id, event="error", message=plan["error"].format(**request["access"]), retry=plan["retry"]
        )
        return
    result = {"pid": os.getpid(), "echo": plan.get("echo"), "env": dict(os.environ)}
    _say("another", event="result", result={"not": "ours"})
    _say(request_id, event="result", result=result)


def _say(request_id: str, **answer: object) -> None:
    sys.stdout.write(json.dumps({"id": request_id, **answer}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
