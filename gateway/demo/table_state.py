"""The state of a table that its actions lead to, as checkpoints and compactions write it down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from gateway.demo.deletion_vector import unique_id

Action: TypeAlias = Mapping[str, Any]
# A file without a deletion vector, and with each that it ever had, are files of their own.
LogicalFile: TypeAlias = tuple[str, str | None]


class TableState:
    """What the actions so far amount to; each kind is as the latest of them says."""

    def __init__(self) -> None:
        self.protocol: Action | None = None
        self.metadata: Action | None = None
        self.files: dict[LogicalFile, Action] = {}
        self.removed: dict[LogicalFile, Action] = {}
        self._transactions: dict[str, Action] = {}
        self._domains: dict[str, Action] = {}

    @property
    def live(self) -> dict[str, Action]:
        """Return the adds of the live files, by their path in the log."""
        return {add["path"]: add for add in self.files.values()}

    def apply(self, actions: Iterable[Action]) -> None:
        """Take in the actions of a commit, whose order means nothing."""
        for action in sorted(actions, key=lambda action: "add" in action):
            self._apply(action)

    def to_actions(self) -> list[Action]:
        return [*self.to_table_actions(), *self.to_file_actions()]

    def to_table_actions(self) -> list[Action]:
        """Return what is not about a file."""
        alone = {"protocol": self.protocol, "metaData": self.metadata}
        return [
            *({name: value} for name, value in alone.items() if value is not None),
            *({"txn": each} for each in self._transactions.values()),
            *({"domainMetadata": each} for each in self._domains.values()),
        ]

    def to_file_actions(self) -> list[Action]:
        return [
            *({"add": add} for add in self.files.values()),
            *({"remove": remove} for remove in self.removed.values()),
        ]

    def _apply(self, action: Action) -> None:
        if add := action.get("add"):
            self.removed.pop(_file_of(add), None)
            self.files[_file_of(add)] = add
        elif remove := action.get("remove"):
            self.files.pop(_file_of(remove), None)
            self.removed[_file_of(remove)] = remove
        elif transaction := action.get("txn"):
            self._transactions[transaction["appId"]] = transaction
        elif domain := action.get("domainMetadata"):
            self._domains[domain["domain"]] = domain
        self.metadata = action.get("metaData", self.metadata)
        self.protocol = action.get("protocol", self.protocol)


def _file_of(action: Action) -> LogicalFile:
    return action["path"], unique_id(action.get("deletionVector"))
