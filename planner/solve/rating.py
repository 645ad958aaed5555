"""What a search asks about the pools of a model: whether they bear the mix of workloads that they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from planner.program.data import FleetProblem


class Rating(Protocol):
    """Rates the pools of one model at their real mix; `problem` is that of the model alone, `replicas` all that it has."""

    def holds(self, problem: FleetProblem, replicas: Mapping[str, int]) -> bool:
        """Tell whether all pools bear what they get."""
        ...

    def lowered(self, problem: FleetProblem, replicas: Mapping[str, int]) -> FleetProblem | None:
        """Return the model with capacities lowered to what pools bear, None where they hold."""
        ...


class AsStated:
    """Takes every capacity as the problem states it."""

    def holds(self, _problem: FleetProblem, _replicas: Mapping[str, int]) -> bool:
        """Tell that they do."""
        return True

    def lowered(self, _problem: FleetProblem, _replicas: Mapping[str, int]) -> FleetProblem | None:
        """Lower nothing."""
        return None
