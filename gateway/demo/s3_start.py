"""Starts the embedded S3 beside the building of the sample, and goes on without it where it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gateway.demo.embedded_s3 import REGION, S3NotStarted, StartingS3, starting_s3
from gateway.demo.s3_sample import S3_TABLES, to_storage
from gateway.demo.sample import Progress, SampleCatalog


@contextmanager
def sample_on_s3(
    directory: Path, build: Callable[[], SampleCatalog], progress: Progress, scripts: str | None = None
) -> Iterator[tuple[SampleCatalog, dict[str, Any] | None]]:
    """Give the sample, and the storage entry of the tables on S3; None where there is no S3.

    ``scripts`` is where the store's program lies; left out, where this interpreter's programs do.
    """
    with ExitStack() as stack:
        try:
            starting = stack.enter_context(starting_s3(directory, scripts))
        except S3NotStarted as exc:
            progress(f"going on without S3 and dir access: {exc}")
            yield build(), None
            return
        sample = build()
        yield sample, _fill(starting, sample, progress)


def _fill(starting: StartingS3, sample: SampleCatalog, progress: Progress) -> dict[str, Any] | None:
    progress("an S3 store for url and dir access (make run S3=0 leaves it out)")
    try:
        store = starting.wait()
        for table in S3_TABLES:
            store.upload(sample.location_of(table.source), table.key)
    except S3NotStarted as exc:
        progress(f"going on without S3 and dir access: {exc}")
        return None
    return to_storage(store.endpoint, REGION, store.gateway)
