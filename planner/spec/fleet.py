"""The whole spec: one fleet, its models, workloads, supply and policies."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from planner.spec.deployed import DeployedSpec
from planner.spec.fields import Line, some
from planner.spec.growth import GrowthSpec
from planner.spec.model import ModelSpec
from planner.spec.planning import PlanningSpec
from planner.spec.policies import PolicySpec
from planner.spec.readers import SpecVersion, Text
from planner.spec.reliability import ReliabilitySpec
from planner.spec.section import Section
from planner.spec.supply import SupplySpec
from planner.spec.workload import WorkloadSpec

_DIGEST = r"sha256:[0-9a-f]{64}"


class CatalogRef(Section):
    """Which catalog the spec is written against."""

    path: Line | None = None
    """Folder of the catalog, relative to the spec."""
    digest: Annotated[str, Text(_DIGEST, "`sha256:` and 64 hexadecimal digits")] | None = None
    """Digest that the catalog must have."""


class FleetSpec(Section):
    """A fleet of LLM services: what to serve, where hardware may come from, and what must hold."""

    version: Annotated[int, SpecVersion()]
    """Version of this grammar: 1."""
    requires_planner: Line | None = None
    """Releases of the planner that may read this spec, such as `>=0.1`; checked before anything else."""
    fleet: Line
    """Name of the fleet."""
    catalog: CatalogRef | None = None
    """Catalog to use; default: the nearest `catalog/` folder upward, else the one that is installed."""
    defaults: ModelSpec = ModelSpec()
    """Merged under every model, key by key."""
    models: Annotated[dict[str, ModelSpec], AfterValidator(some("model"))]
    """Models to serve, by a name of your choice."""
    workloads: Annotated[dict[str, WorkloadSpec], AfterValidator(some("workload"))]
    """Classes of traffic, by a name of your choice."""
    growth: GrowthSpec | None = None
    """How demand grows, and how many months to plan; default: the fleet of today alone."""
    supply: SupplySpec
    """Where nodes may come from, limits and budget."""
    reliability: ReliabilitySpec = ReliabilitySpec()
    """Spare replicas and headroom of every model."""
    planning: PlanningSpec = PlanningSpec()
    """What to minimise and how."""
    policies: tuple[PolicySpec, ...] = ()
    """Rules on the finished plan."""
    deployed: tuple[DeployedSpec, ...] = ()
    """What runs today: the fleet to keep where no plan is given with `--prefer`."""

    def reliability_of(self, model: str) -> ReliabilitySpec:
        """Return the reliability of a model: the top level, overridden key by key."""
        return self.reliability.overridden_by(self.models[model].reliability)

    def growth_of(self, workload: str) -> float:
        """Return by how much the demand of a workload grows in a month, as a share of it."""
        own = self.workloads[workload].growth
        if self.growth is None:
            return 0.0
        return self.growth.rate if own is None else own

    def workloads_of(self, model: str) -> dict[str, WorkloadSpec]:
        """Return the workloads that a model serves, by name."""
        return {name: workload for name, workload in self.workloads.items() if workload.model == model}
