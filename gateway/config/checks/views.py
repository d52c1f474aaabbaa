"""Views: their queries, and whether those who may see them have what they ask for."""

from __future__ import annotations

from gateway.config.path import Path
from gateway.config.report import Report
from gateway.config.schema import Config, RecipientConfig
from gateway.config.views.binding import Key
from gateway.config.views.compiling import Compiled, Views
from gateway.domain.name import fold
from gateway.domain.principal import ALL_SHARES

# Where every recipient of a file lacks something, a few of them tell enough.
_MOST_NAMED = 3


def check_views(config: Config, report: Report) -> None:
    views = Views(config, report)
    compiled = views.compile()
    # What can be said without their tables: names of results, and columns of views upon views.
    views.check_columns({})
    for key, view in compiled.items():
        if view.properties:
            _warn_of_properties(config, key, view, views.path(key), report)


def _warn_of_properties(config: Config, key: Key, view: Compiled, path: Path, report: Report) -> None:
    for name in view.properties:
        without = [entry.name for entry in config.recipients if _lacks(entry, key[0], name)]
        if config.authorization is not None:
            without.append("whoever has authorization.bearerToken")
        if without:
            more = f" and {len(without) - _MOST_NAMED:,} more" if len(without) > _MOST_NAMED else ""
            shown = ", ".join(without[:_MOST_NAMED])
            report.warn(
                path,
                f"asks for the property {name!r}, which {shown}{more} may see it without: it is null for "
                "them; set recipients[].properties",
            )


def _lacks(recipient: RecipientConfig, share: str, name: str) -> bool:
    sees = recipient.shares == ALL_SHARES or share in {fold(granted) for granted in recipient.shares}
    return sees and not recipient.disabled and name not in recipient.properties
