"""What policies look at: a finished plan, from the pipeline or from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cached_property

from planner.catalog import Catalog, UnknownName
from planner.plan.schema import NodePlan, Plan, WorkloadPlan


@dataclass(frozen=True)
class Bought:
    """Nodes of one offer that are paid for. `country` is empty where it is not known."""

    offer: str
    provider: str
    region: str
    country: str
    gpu: str
    term: str
    usd_per_hour: float


@dataclass(frozen=True)
class PlanFacts:
    """A finished plan with a fleet, and the catalog that names its GPUs.

    Prices and waivers age `as_of` a day, which is that of the plan where it is judged as it is made.
    `baseline_usd_per_month` is the cost of the plan that it is compared with, None where there is none.
    """

    plan: Plan
    catalog: Catalog
    as_of: date
    baseline_usd_per_month: float | None = None

    @property
    def usd_per_month(self) -> float:
        """Cost of the fleet."""
        return self.plan.objective.usd_per_month if self.plan.objective is not None else 0.0

    @cached_property
    def bought(self) -> tuple[Bought, ...]:
        """Nodes that are paid for, used or not."""
        return tuple(
            Bought(n.offer, n.provider, n.region, self._country(n), n.gpu, n.term, n.usd_per_hour)
            for n in self.plan.nodes
        )

    def workloads(self, names: Sequence[str]) -> Iterator[WorkloadPlan]:
        """Yield the workloads that names match, `*` and `?` as in file names; all of them where there are no names."""
        return (w for w in self.plan.workloads if not names or any(fnmatchcase(w.name, name) for name in names))

    def _country(self, node: NodePlan) -> str:
        """Return the country of a node: as the plan has it, which plans of older releases leave to the catalog."""
        if node.country is not None:
            return node.country
        try:
            return self.catalog.regions(node.provider).get(node.region, "")
        except UnknownName:
            return ""
