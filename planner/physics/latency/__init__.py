"""Latency under load by the limited-processor-sharing (LPS) closed form, see planner/manual/physics.md.

Everything is a function of the mean decode batch `B` of one replica: prompts per step are `B / E[o - 1]` whatever the
step takes, so no fixed point is solved. Arrays run over pairs of a shape and a workload.
"""

from planner.physics.latency.flow import batch_at, saturation, throughput
from planner.physics.latency.largest import (
    LONE_REPLICA_FACTOR,
    UTILIZATION_GUARD,
    Ceiling,
    ceiling,
    holds_at,
    idle_miss,
    largest_batch,
    largest_within,
)
from planner.physics.latency.mixture import merge
from planner.physics.latency.rating import AtBatch, allowed_share
from planner.physics.latency.types import METRICS, Flow, Largest, Lengths, Pairs, Saturation

__all__ = [
    "LONE_REPLICA_FACTOR",
    "METRICS",
    "UTILIZATION_GUARD",
    "AtBatch",
    "Ceiling",
    "Flow",
    "Largest",
    "Lengths",
    "Pairs",
    "Saturation",
    "allowed_share",
    "batch_at",
    "ceiling",
    "holds_at",
    "idle_miss",
    "largest_batch",
    "largest_within",
    "merge",
    "saturation",
    "throughput",
]
