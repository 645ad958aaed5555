"""Policies: rules that a reviewer sets on the finished plan. One module per rule under `rules`."""

from planner.policy.evaluate import denies, evaluate

__all__ = ["denies", "evaluate"]
