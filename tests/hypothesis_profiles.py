"""Hypothesis profiles, and the number of random cases that a test tries under each of them.

HYPOTHESIS_PROFILE chooses the profile: `ci` (default), `fast` (`make test-fast`), `deep` (`make test-deep`).
Only `deep` is random: a change must not fail on an input that it has nothing to do with. The others try the
same inputs in each run, so they need no database of failures.

A test states its number relative to the profile's, so that this file sets the effort of random tests.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_CI_EXAMPLES = 100
_EXAMPLES = {"fast": 10, "ci": _CI_EXAMPLES, "deep": 2_000}
# Fewer examples than this hardly vary anything.
_MIN_EXAMPLES = 5


def load_profile() -> None:
    for name, number in _EXAMPLES.items():
        # A busy machine is slow, which says nothing about an example: no deadline, and no check of the speed.
        # The blob reproduces a failure of random examples.
        settings.register_profile(
            name,
            max_examples=number,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            derandomize=name != "deep",
            print_blob=True,
        )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def examples(factor: float) -> int:
    """Return `factor` times the profile's number of examples."""
    return max(_MIN_EXAMPLES, round(factor * settings().max_examples))


def seeds(number: int) -> range:
    """Return the seeds of a test with a random generator of its own: fewer in the fast lane."""
    share = min(1.0, settings().max_examples / _CI_EXAMPLES)
    return range(max(1, round(share * number)))
