"""The alerts as text: who is woken by them, what they say, and where they send whoever is."""

from __future__ import annotations

import re

from tests.declared_metrics import declared_series
from tests.observed import RULES, alert_place, alerts, dashboards, panels, rules
from tests.problems import assert_none, place
from tests.repository import ROOT

ALERTS = alerts()
PAGE = ROOT / "docs" / "runbooks.md"
RUNBOOKS = PAGE.read_text()
PARTS = ("Means", "Felt", "Look", "Causes", "Do", "Over")


def sections() -> dict[str, str]:
    """Return the text below each heading that is named like an alert."""
    found = re.split(r"^### (\w+)$", RUNBOOKS, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_every_alert_has_a_section_of_the_runbooks_and_every_section_an_alert():
    assert set(sections()) == set(ALERTS)


def test_a_section_tells_all_that_whoever_is_woken_needs():
    found = sections()
    assert_none(
        f"{place(PAGE, rf'^### {name}$')}: {name} has no part '- **{part}.** '"
        for name in ALERTS
        for part in PARTS
        if f"- **{part}.** " not in found.get(name, "")
    )


def test_an_alert_says_what_is_wrong_whom_it_wakes_and_what_to_read():
    problems = []
    for name, alert in ALERTS.items():
        annotations, severity = alert.get("annotations", {}), alert.get("labels", {}).get("severity")
        if set(annotations) != {"summary", "description", "runbook_url"}:
            problems.append(f"{alert_place(name)} has the annotations {sorted(annotations)}")
        if (url := annotations.get("runbook_url")) != f"docs/runbooks.md#{name.lower()}":
            problems.append(f"{alert_place(name)} has the runbook_url {url}")
        if severity not in ("page", "ticket"):
            problems.append(f"{alert_place(name)} has the severity {severity}")
    assert_none(problems)


def test_panels_and_dashboards_that_the_runbooks_send_to_exist():
    boards = dashboards().values()
    titles = {board["title"] for board in boards} | {
        panel["title"] for board in boards for panel in panels(board)
    }
    named = set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", RUNBOOKS))
    assert len(named) > 40
    assert named - titles == set()


def test_metrics_that_the_runbooks_name_exist():
    assert set(re.findall(r"\b(sluice_\w+)", RUNBOOKS)) - declared_series() == set()


def test_names_are_used_once():
    names = [rule["alert"] for rule in rules() if "alert" in rule]
    assert len(set(names)) == len(names)


def test_severities_in_the_runbooks_are_those_of_the_alerts():
    said = dict(re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\w+) \|", RUNBOOKS, flags=re.MULTILINE))
    assert said == {name: alert["labels"]["severity"] for name, alert in ALERTS.items()}


def test_there_are_rules_to_test():
    assert len(RULES) == 9
    assert len(ALERTS) > 30
