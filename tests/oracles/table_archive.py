"""The tables that Spark wrote, in one compressed file, so that an empty machine need not run Spark for them.

The archive names the generators that wrote it by their hash. An archive of other generators is not used. The
hash of the archive itself is committed beside it, so that its change is a change of a line of text.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

ARCHIVE: Final = Path(__file__).with_name("spark_tables.tar.xz")
# A shallow clone refers to its source by an absolute path, so Spark writes it on each machine.
NOT_ARCHIVED: Final = frozenset({"clone"})
_DIGEST: Final = "digest"
# Of all tables together, unpacked.
_MOST_BYTES: Final = 256 * 1024 * 1024


def pack(directory: Path, names: Collection[str], digest: str, archive: Path = ARCHIVE) -> None:
    """Write the tables of a directory to the archive."""
    fresh = archive.with_name(f"{archive.name}.new")
    with tarfile.open(fresh, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as packed:
        head = tarfile.TarInfo(_DIGEST)
        head.size = len(digest)
        packed.addfile(head, io.BytesIO(digest.encode()))
        for name in sorted(set(names) - NOT_ARCHIVED):
            for file in sorted(path for path in (directory / name).rglob("*") if path.is_file()):
                member = tarfile.TarInfo(file.relative_to(directory).as_posix())
                member.size = file.stat().st_size
                # The time of a commit. Whole microseconds are exact in a float, nanoseconds are not.
                member.mtime = file.stat().st_mtime_ns // 1000 / 1e6
                with file.open("rb") as content:
                    packed.addfile(member, content)
    # An interruption leaves the archive as it was.
    fresh.replace(archive)
    _checksum_file(archive).write_text(f"{_checksum(archive)}  {archive.name}\n")


def unpack(directory: Path, names: Collection[str], digest: str, archive: Path = ARCHIVE) -> None:
    """Write the tables that the archive has to a directory; none if other generators wrote it."""
    if not archive.exists():
        return
    _check(archive)
    with tarfile.open(archive) as packed:
        if _read(packed, packed.next()) != digest.encode():
            return
        left = _MOST_BYTES
        for member in _members(packed):
            left -= member.size
            _require_file_below(member, left)
            if member.name.partition("/")[0] in names:
                file = directory / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(_read(packed, member))
                time = round(member.mtime * 1e6) * 1000
                os.utime(file, ns=(time, time))


def digest_of(archive: Path = ARCHIVE) -> str:
    """Return the hash of the generators that wrote the archive."""
    with tarfile.open(archive) as packed:
        return _read(packed, packed.next()).decode()


def _check(archive: Path) -> None:
    committed = _checksum_file(archive).read_text().split()[0]
    if _checksum(archive) != committed:
        raise ValueError(f"{archive.name} is not the archive whose hash is in {_checksum_file(archive).name}")


def _checksum(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def _checksum_file(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.sha256")


def _require_file_below(member: tarfile.TarInfo, left: int) -> None:
    """Refuse a member that is no plain file below the directory of a table, or one too many."""
    parts = PurePosixPath(member.name).parts
    if not member.isreg() or len(parts) < 2 or ".." in parts or member.name.startswith("/") or left < 0:
        raise ValueError(f"the archive of Spark's tables has a member that is not allowed: {member.name!r}")


def _members(packed: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := packed.next()) is not None:
        yield member


def _read(packed: tarfile.TarFile, member: tarfile.TarInfo | None) -> bytes:
    content = packed.extractfile(member) if member is not None else None
    assert content is not None, "not an archive of tables"
    return content.read()
