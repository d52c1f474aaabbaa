"""Changes of single entries of the configuration's file, which are found by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway.adapters.config_edit import ConfigText, NotEditable, Values, changed, snippet, with_values
from gateway.commands.bearer import format_time
from gateway.commands.revocation.draft import check_text
from gateway.config.schema import Config, RecipientConfig, StorageConfig

Section = Literal["recipients", "storages"]
Entry = RecipientConfig | StorageConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A moment to set in one entry, and whether to disable it."""

    # As it was when the change was thought of; what it says now must still be that.
    entry: Entry
    revoked_at: datetime
    disables: bool = False

    @property
    def section(self) -> Section:
        return "recipients" if isinstance(self.entry, RecipientConfig) else "storages"

    @property
    def values(self) -> Values:
        moment: Values = {"revokedAt": format_time(self.revoked_at)}
        return {"disabled": True, **moment} if self.disables else moment

    @property
    def changed_entry(self) -> Entry:
        update: dict[str, object] = {"revoked_at": self.revoked_at}
        return self.entry.model_copy(update=update | ({"disabled": True} if self.disables else {}))

    def __str__(self) -> str:
        return snippet(self.section, self.entry.name, self.values)


def to_text(changes: Sequence[Change]) -> str:
    return "\n".join(map(str, changes))


def with_changes(old: ConfigText, changes: Sequence[Change], env: Mapping[str, str]) -> str:
    """Return the text with the changes; raise ``Changed``, ``NotEditable`` or ``ConfigError``."""
    expected, text = check_text(old.text, env), old.text
    for change in changes:
        entries = _entries(expected, change.section)
        # Its number is that of this very text: since the plan, others may have come before it.
        number = next((at for at, entry in enumerate(entries) if entry == change.entry), None)
        if number is None:
            raise changed(old.file)
        text = with_values(text, (change.section, number), change.values)
        made = (*entries[:number], change.changed_entry, *entries[number + 1 :])
        expected = expected.model_copy(update={change.section: made})
    # A gateway must read these changes in it, and no others.
    if check_text(text, env) != expected:
        raise NotEditable(
            f"{old.file} is written so that a gateway would not read this change as it is meant"
        )
    return text


def _entries(config: Config, section: Section) -> tuple[Entry, ...]:
    return tuple(config.recipients if section == "recipients" else config.storages or ())
