"""A proxy before one gateway, with a listener for each way to be set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

# As the documentation says; compressing by itself; with short time-outs; as it comes.
LISTENERS = ("plain", "compressing", "hasty", "untold")


@dataclass(frozen=True, slots=True)
class Proxy:
    ports: Mapping[str, int]

    def url(self, listener: str, url: str) -> str:
        """Return a URL of the gateway as it is behind a listener."""
        scheme, _, rest = url.partition("://")
        return f"{scheme}://127.0.0.1:{self.ports[listener]}/{rest.partition('/')[2]}"


def configuration(name: str, directory: Path, **values: int) -> Path:
    """Return a file with the template of that name, filled in."""
    template = Template((Path(__file__).parent / name).read_text())
    file = directory / name
    file.write_text(template.substitute(values))
    return file
