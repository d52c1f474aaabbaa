"""What a principal is shown under a view's name."""

from __future__ import annotations

from gateway.domain.principal import Principal, PrincipalKind
from gateway.domain.table import Table
from gateway.domain.view import Showing
from gateway.errors import Unsupported


def showing_of(table: Table, principal: Principal) -> Showing:
    """Return the showing; raise ``Unsupported`` for whom there is none."""
    view = table.view
    if view is None:
        raise Unsupported(f"table {table.name} is no view")
    if not view.is_personal:
        return Showing(view=view, name=table.name)
    if principal.kind is not PrincipalKind.RECIPIENT:
        raise Unsupported(f"view {table.name} shows each recipient rows of its own: ask for a recipient")
    values = dict(principal.properties)
    return Showing(
        view=view,
        name=table.name,
        recipient=principal.name,
        values=tuple(values.get(name) for name in view.properties),
    )
