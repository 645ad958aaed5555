"""What a change does to policies: which it adds, removes and edits, and whether that loosens them.

A policy is loosened where some plan may pass that did not, and tightened where some plan no longer passes; an edit can
do both. A change cannot loosen its own policies: `both_sides` judges it by those of before and after together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from planner.policy.placed import PlacedPolicy
from planner.policy.rule import all_rules
from planner.spec import PolicySpec, WaiveSpec

EditKind = Literal["added", "removed", "changed"]
EditOf = Literal["limit", "workloads", "level", "waiver", "id"]


@dataclass(frozen=True)
class PolicyChange:
    """What of a policy changed, and what that does."""

    of: EditOf
    loosens: bool
    tightens: bool


@dataclass(frozen=True)
class PolicyEdit:
    """A policy that a change adds, removes or edits; `old` or `new` is None where there is none."""

    kind: EditKind
    old: PlacedPolicy | None
    new: PlacedPolicy | None
    changes: tuple[PolicyChange, ...] = ()

    @property
    def loosens(self) -> bool:
        """Tell whether some plan may pass now that did not."""
        return self.kind == "removed" or any(change.loosens for change in self.changes)

    @property
    def tightens(self) -> bool:
        """Tell whether some plan no longer passes."""
        return self.kind == "added" or any(change.tightens for change in self.changes)


def edits(old: Sequence[PlacedPolicy], new: Sequence[PlacedPolicy]) -> tuple[PolicyEdit, ...]:
    """Return what became of the policies, those removed and changed in the order of `old`, then those added.

    Policies are the same where they have one label and rule, or else one rule and limit; order does not matter.
    """
    partners = _partners(old, new)
    matched = {id(after) for after in partners.values()}
    found: list[PolicyEdit] = []
    for number, before in enumerate(old):
        after = partners.get(number)
        if after is None:
            found.append(PolicyEdit("removed", before, None))
        elif before.policy != after.policy:
            found.append(PolicyEdit("changed", before, after, tuple(_changes(before.policy, after.policy))))
    found += [PolicyEdit("added", None, after) for after in new if id(after) not in matched]
    return tuple(found)


def both_sides(old: Sequence[PlacedPolicy], new: Sequence[PlacedPolicy]) -> tuple[PlacedPolicy, ...]:
    """Return what a change is judged by: all policies of after, and those of before that are not the same there.

    So the stricter of both wins, and a waiver that the change itself adds or prolongs does not waive before it is
    merged.
    """
    kept = [after.policy for after in new]
    return (*new, *(before for before in old if before.policy not in kept))


def _partners(old: Sequence[PlacedPolicy], new: Sequence[PlacedPolicy]) -> dict[int, PlacedPolicy]:
    """Return which policy of after each policy of before has become, by its number; equal ones first."""
    found: dict[int, PlacedPolicy] = {}
    left = list(new)
    for key in _SAME:
        for number, before in enumerate(old):
            after = next((a for a in left if key(a.policy) == key(before.policy)), None)
            if number not in found and after is not None:
                found[number] = after
                left = [a for a in left if a is not after]
    return found


_SAME: tuple[Callable[[PolicySpec], Hashable], ...] = (
    lambda policy: policy.model_dump_json(),
    lambda policy: (policy.label, policy.rule),
    lambda policy: (policy.rule, str(policy.value)),
)


def _changes(old: PolicySpec, new: PolicySpec) -> Iterator[PolicyChange]:
    is_looser = all_rules()[old.rule].is_looser
    if old.value != new.value:
        yield PolicyChange("limit", is_looser(old, new), is_looser(new, old))
    if old.workloads != new.workloads:
        yield PolicyChange("workloads", _leaves_out(old, new), _leaves_out(new, old))
    if old.level != new.level:
        yield PolicyChange("level", new.level == "warn", old.level == "warn")
    if old.waive != new.waive:
        yield PolicyChange("waiver", _waives_longer(old.waive, new.waive), _waives_longer(new.waive, old.waive))
    if old.label != new.label:
        yield PolicyChange("id", False, False)


def _leaves_out(old: PolicySpec, new: PolicySpec) -> bool:
    """Tell whether workloads that a policy was about may no longer be among its own."""
    return bool(new.workloads) and not (old.workloads and set(old.workloads) <= set(new.workloads))


def _waives_longer(old: WaiveSpec | None, new: WaiveSpec | None) -> bool:
    return new is not None and (old is None or new.until > old.until)
