"""The job that makes a showing: its key, and what its planner is told."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.job import JobKey, JobKind
from gateway.domain.name import TableName
from gateway.domain.view import Showing


def view_job_key(showing: Showing) -> JobKey:
    return JobKey(kind=JobKind.VIEW, subject=showing.fingerprint)


def view_job_parameters(showing: Showing) -> Mapping[str, str]:
    """Return the names that a showing is found by again: values are looked up when it is made."""
    name = showing.name
    return {
        "share": name.share,
        "schema": name.schema,
        "view": name.table,
        "recipient": showing.recipient,
    }


def view_name_of(parameters: Mapping[str, str]) -> TableName:
    return TableName(parameters["share"], parameters["schema"], parameters["view"])
