"""What a plan has otherwise than the fleet that ran: replicas by shape, nodes by offer, and batch caps of pools that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from planner.plan.pools import pool_shape
from planner.plan.schema import Plan, PreferredChange
from planner.prefer.earlier import EarlierFleet, described


def changes_between(before: EarlierFleet, after: Plan) -> tuple[PreferredChange, ...]:
    """Return the changes from a fleet to a plan, sorted by kind and name."""
    replicas = sum(
        (Counter({described(p.model, pool_shape(p), p.spot): p.replicas}) for p in after.pools), Counter[str]()
    )
    return (
        *_counts("replicas", before.replicas(), replicas),
        *_counts("nodes", Counter({n.offer: n.most for n in before.nodes}), Counter(_nodes(after))),
        *_batch_caps(before, after),
    )


def _nodes(plan: Plan) -> dict[str, int]:
    return {node.offer: node.nodes for node in plan.nodes}


def _counts(kind: str, before: Counter[str], after: Counter[str]) -> Iterator[PreferredChange]:
    for name in sorted(before.keys() | after.keys()):
        if before[name] != after[name]:
            yield PreferredChange.model_validate({"kind": kind, "name": name, "from": before[name], "to": after[name]})


def _batch_caps(before: EarlierFleet, after: Plan) -> Iterator[PreferredChange]:
    """Yield the batch caps that differ, of shapes with as many replicas as before in one pool: engines restart for them."""
    known = {(p.model, p.shape, p.most): p.max_num_seqs for p in before.pools}
    for pool in after.pools:
        cap = known.get((pool.model, pool_shape(pool), pool.replicas))
        if cap is not None and cap != pool.max_num_seqs:
            change = {"kind": "max_num_seqs", "name": pool.name, "from": cap, "to": pool.max_num_seqs}
            yield PreferredChange.model_validate(change)
