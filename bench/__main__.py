"""``python -m bench [NAME …]``: runs the named benchmarks, or every module here that has a ``main``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    folder = Path(__file__).parent
    names = sys.argv[1:] or sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))
    for name in names:
        module = import_module(f"bench.{name}")
        if hasattr(module, "main"):
            print(f"== {name}", flush=True)
            module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
