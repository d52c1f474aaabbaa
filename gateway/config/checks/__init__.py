"""What a schema cannot say: rules that take in more than one value."""

from __future__ import annotations

from gateway.config.checks.access import check_access
from gateway.config.checks.cache import check_cache
from gateway.config.checks.catalog import check_catalog
from gateway.config.checks.http import check_http
from gateway.config.checks.keys import check_keys
from gateway.config.checks.services import check_services
from gateway.config.checks.storage import check_storage
from gateway.config.checks.work import check_work
from gateway.config.report import Report
from gateway.config.schema import Config, has_views

_CHECKS = (
    *(check_storage, check_catalog, check_access, check_http, check_services, check_keys, check_cache),
    check_work,
)


def check(config: Config, report: Report) -> None:
    """Report everything that is wrong between the values of a configuration."""
    for part in _CHECKS:
        part(config, report)
    if has_views(config):
        from gateway.config.checks.views import check_views  # noqa: PLC0415 -- sqlglot is slow to import

        check_views(config, report)
