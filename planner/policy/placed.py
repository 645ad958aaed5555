"""A policy with where it stands, so that a result leads back to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.spec import PolicySpec


@dataclass(frozen=True)
class PlacedPolicy:
    """A policy and its place: the path in its file, and the file where it is not the spec of the plan."""

    policy: PolicySpec
    path: str
    file: str | None = None


def placed(policies: Sequence[PolicySpec], file: str | None = None) -> tuple[PlacedPolicy, ...]:
    """Return the policies of one file with their places; `file` names it where it is not the spec of the plan."""
    return tuple(PlacedPolicy(policy, f"policies[{number}]", file) for number, policy in enumerate(policies))
