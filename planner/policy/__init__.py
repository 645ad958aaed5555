"""Policies: rules that a reviewer sets on the finished plan. One module per rule under `rules`."""

from planner.policy.edits import both_sides, edits
from planner.policy.evaluate import denies, evaluate
from planner.policy.facts import PlanFacts
from planner.policy.placed import PlacedPolicy, placed

__all__ = ["PlacedPolicy", "PlanFacts", "both_sides", "denies", "edits", "evaluate", "placed"]
