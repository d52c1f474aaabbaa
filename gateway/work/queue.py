"""The queue, as a worker sees it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from gateway.domain.job import Claim, Job, JobKey, JobKind
from gateway.ports import Jobs


class JobQueue(Jobs, Protocol):
    """Whose a job is, is asked of the state each time, and never remembered."""

    async def claim(self, kinds: Collection[JobKind]) -> Claim | None:
        """Take the job of these kinds that has waited longest; None when there is nothing to do."""

    async def look(self, kinds: Collection[JobKind]) -> None:
        """Tell what waits and for how long, and take nothing."""

    async def claim_job(self, key: JobKey) -> Claim | None:
        """Take this job, even if it should wait after a failure; None when it is not there to be taken."""

    async def renew(self, claim: Claim) -> Claim | None:
        """Prove the lease and extend it; None when it is lost: the job is another's, or nobody's."""

    async def release(self, claim: Claim) -> None:
        """Give the job back untried: another worker may take it at once."""

    async def complete(self, claim: Claim) -> bool:
        """Note that the run ended well; tell whether the lease was still there to say so."""

    async def fail(self, claim: Claim, error: str, *, retry: bool) -> Job | None:
        """Note that the run failed, to be tried again later where that may help; None: the lease was lost."""
