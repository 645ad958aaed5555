"""What is checked before anything else: that this release may and can read the spec."""

from __future__ import annotations

import re

import planner
from planner.diagnostics import Diagnostic
from planner.source import Document
from planner.spec.vocabulary import SPEC_VERSION

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)\s*", re.ASCII)
Version = tuple[int, ...]


def check_gate(document: Document) -> list[Diagnostic]:
    """Return what forbids reading on: `requires_planner` that does not hold, or another version of the grammar."""
    return _check_release(document) or _check_version(document)


def is_satisfied(requirement: str, release: str) -> bool | None:
    """Tell whether a release meets a requirement such as `>=0.1, <2`; None when the requirement is not readable."""
    ours = _version(release)
    clauses = [_CLAUSE.fullmatch(clause) for clause in requirement.split(",")]
    if not all(clauses):
        return None
    return all(_holds(clause[1], ours, _version(clause[2])) for clause in clauses if clause)


def _check_release(document: Document) -> list[Diagnostic]:
    wanted = document.data.get("requires_planner")
    if wanted is None:
        return []
    span = document.span(("requires_planner",))
    holds = is_satisfied(wanted, planner.__version__) if isinstance(wanted, str) else None
    if holds is None:
        message = "`requires_planner` is not a list of releases"
        return [Diagnostic("spec/requires-planner", message, span, label='write it as ">=0.1" or ">=0.1, <2"')]
    if not holds:
        message = f"this spec requires planner {wanted}; this is {planner.__version__}"
        return [Diagnostic("spec/requires-planner", message, span, label="install a release that meets this")]
    return []


def _check_version(document: Document) -> list[Diagnostic]:
    version = document.data.get("version")
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if version is None or (is_number and version == SPEC_VERSION):
        return []
    message = "`version` is a whole number"
    if is_number:
        message = f"this release reads version {SPEC_VERSION} of the spec, not {version}"
    return [
        Diagnostic("spec/version", message, document.span(("version",)), label=f"write `version: {SPEC_VERSION}`"),
    ]


def _version(text: str) -> Version:
    match = re.match(r"\d+(?:\.\d+)*", text, re.ASCII)
    parts = [int(part[:9]) for part in match[0].split(".")] if match else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _holds(operator: str, ours: Version, wanted: Version) -> bool:
    return {
        ">=": ours >= wanted,
        "<=": ours <= wanted,
        "==": ours == wanted,
        "!=": ours != wanted,
        ">": ours > wanted,
        "<": ours < wanted,
        "~=": ours >= wanted and ours[: max(1, len(wanted) - 1)] == wanted[:-1][: max(1, len(wanted) - 1)],
    }[operator]
