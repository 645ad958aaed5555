"""Make the changes of a report in the text of a spec, as a user would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from planner.plan.schema import InfeasibleReport, Relaxation


def ways_of(report: InfeasibleReport) -> list[list[Relaxation]]:
    """Return the changes of a report by way."""
    numbers = sorted({r.way for r in report.relaxations})
    return [[r for r in report.relaxations if r.way == number] for number in numbers]


def changed(text: str, changes: Sequence[Relaxation]) -> str:
    """Return a spec with the changes of a way made."""
    return set_values(text, {change.key: change.to for change in changes})


def set_values(text: str, values: Mapping[str, str]) -> str:
    """Return a spec with values, written as YAML, at keys. Names must hold no dots, offers must have names."""
    data = yaml.safe_load(text)
    for key, value in values.items():
        *above, last = key.split(".")
        node = data
        for name in above:
            node = _below(node, name)
        node[last] = yaml.safe_load(value)
    return yaml.safe_dump(data, sort_keys=False)


def _below(node: Any, name: str) -> Any:
    if isinstance(node, list):
        return next(item for item in node if item["name"] == name)
    return node.setdefault(name, {})
