"""What one plan has otherwise than another: replicas by shape, nodes by offer, and settings of shapes that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from planner.plan.pools import pool_shape
from planner.plan.schema import Plan, PreferredChange


def changes_between(before: Plan, after: Plan) -> tuple[PreferredChange, ...]:
    """Return the changes from one plan to another, sorted by kind and name."""
    found = [
        *_counts("replicas", _replicas(before), _replicas(after)),
        *_counts("nodes", _nodes(before), _nodes(after)),
        *_batch_caps(before, after),
    ]
    return tuple(found)


def _counts(kind: str, before: Counter[str], after: Counter[str]) -> Iterator[PreferredChange]:
    for name in sorted(before.keys() | after.keys()):
        if before[name] != after[name]:
            yield PreferredChange.model_validate({"kind": kind, "name": name, "from": before[name], "to": after[name]})


def _replicas(plan: Plan) -> Counter[str]:
    counts: Counter[str] = Counter()
    for pool in plan.pools:
        counts[f"{pool.model} on {pool_shape(pool)}{' (spot)' if pool.spot else ''}"] += pool.replicas
    return counts


def _nodes(plan: Plan) -> Counter[str]:
    return Counter({node.offer: node.nodes for node in plan.nodes})


def _batch_caps(before: Plan, after: Plan) -> Iterator[PreferredChange]:
    """Yield the batch caps that differ, for pools of the same name, shape and replicas: engines restart for them."""
    known = {pool.name: pool for pool in before.pools}
    for pool in after.pools:
        other = known.get(pool.name)
        if other is None or (pool_shape(other), other.replicas) != (pool_shape(pool), pool.replicas):
            continue
        if other.max_num_seqs != pool.max_num_seqs:
            change = {"kind": "max_num_seqs", "name": pool.name, "from": other.max_num_seqs, "to": pool.max_num_seqs}
            yield PreferredChange.model_validate(change)
