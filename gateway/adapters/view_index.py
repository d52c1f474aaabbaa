"""The showings of a catalog: each view once, or once for each recipient that may see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.adapters.catalog_index import CatalogIndex
from gateway.domain.name import TableName
from gateway.domain.showing import showing_of
from gateway.domain.table import Table
from gateway.domain.view import Showing


class CatalogShowings:
    """Looks into the catalog anew each time, so that a reload holds from then on."""

    def __init__(self, index: Callable[[], CatalogIndex]) -> None:
        self._index = index

    def find(self, name: TableName, recipient: str) -> Showing | None:
        """Return a view as a recipient, or everybody, is shown it now; None where it is not shown so."""
        table = self._index().tables.get(name.key)
        if table is None:
            return None
        return next((one for one in self._of(table) if one.recipient == recipient), None)

    def of_view(self, name: TableName) -> Iterator[Showing]:
        table = self._index().tables.get(name.key)
        return iter(()) if table is None else self._of(table)

    def all(self) -> Iterator[Showing]:
        for table in self._index().tables.values():
            yield from self._of(table)

    def _of(self, table: Table) -> Iterator[Showing]:
        if table.view is None:
            return
        if not table.view.is_personal:
            yield Showing(view=table.view, name=table.name)
            return
        share = table.name.key[0]
        for principal in self._index().principals.recipients.values():
            if principal.may_see(share) and not principal.disabled:
                yield showing_of(table, principal)
