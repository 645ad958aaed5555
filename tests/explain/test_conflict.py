"""Minimal conflicts against all subsets of small random systems."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from planner.explain.conflict import further_conflicts, minimal_conflict

LIMITS = range(8)
conflicts = st.lists(st.frozensets(st.sampled_from(LIMITS), min_size=1), min_size=1, max_size=4)


@given(conflicts)
def test_a_conflict_is_one_of_the_smallest(clashing: list[frozenset[int]]) -> None:
    def is_infeasible(kept: Sequence[int]) -> bool:
        return any(each <= set(kept) for each in clashing)

    found = minimal_conflict(LIMITS, is_infeasible)

    assert is_infeasible(found)
    assert not any(is_infeasible([x for x in found if x != dropped]) for dropped in found)
    assert found == sorted(found)


@given(conflicts)
def test_few_proofs_are_needed(clashing: list[frozenset[int]]) -> None:
    asked: list[Sequence[int]] = []

    def is_infeasible(kept: Sequence[int]) -> bool:
        asked.append(kept)
        return any(each <= set(kept) for each in clashing)

    found = minimal_conflict(LIMITS, is_infeasible)

    assert len(asked) <= 2 * len(found) * (1 + 3)


def test_without_proofs_everything_is_kept() -> None:
    assert minimal_conflict(LIMITS, lambda _: False) == list(LIMITS)


@given(conflicts)
def test_without_all_conflicts_nothing_clashes(clashing: list[frozenset[int]]) -> None:
    def is_infeasible(kept: Sequence[int]) -> bool:
        return any(each <= set(kept) for each in clashing)

    first = minimal_conflict(LIMITS, is_infeasible)
    further = further_conflicts(LIMITS, first, is_infeasible)

    assert not set(first) & set(further)
    assert not is_infeasible([x for x in LIMITS if x not in {*first, *further}])
