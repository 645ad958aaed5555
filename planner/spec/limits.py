"""Limits on what the fleet may use: GPUs by type, quotas on selected nodes, shares of the cost, power."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from planner.spec.fields import Count, MoneyPerMonth, PositiveCount, Power, Share
from planner.spec.refuse import mistake
from planner.spec.section import Section
from planner.spec.selector import Selector

Measure = Literal["gpus", "nodes", "vcpus", "usd_per_month", "share"]


class LimitRuleSpec(Section):
    """A limit on all nodes that match together: exactly one of gpus, nodes, vcpus, usd_per_month and share."""

    MEASURES: ClassVar[tuple[Measure, ...]] = ("gpus", "nodes", "vcpus", "usd_per_month", "share")

    match: Selector
    """Nodes that the limit is on; `{}` is all of them."""
    gpus: Count | None = None
    """Most GPUs."""
    nodes: Count | None = None
    """Most nodes."""
    vcpus: Count | None = None
    """Most virtual CPUs, as cloud quotas count them; owned nodes have none."""
    usd_per_month: MoneyPerMonth | None = None
    """Most money per month, such as `20k USD/month`."""
    share: Share | None = None
    """Most share of the cost of the whole fleet, such as `60 %`."""

    @property
    def measure(self) -> Measure:
        """What is limited."""
        return next(m for m in self.MEASURES if getattr(self, m) is not None)

    @property
    def most(self) -> float:
        """The limit: a count, USD per month, or a share from 0 to 1."""
        return float(getattr(self, self.measure))

    @model_validator(mode="after")
    def check_measure(self) -> Self:
        """Require exactly one limit."""
        given = [m for m in self.MEASURES if getattr(self, m) is not None]
        if not given:
            known = ", ".join(f"`{m}`" for m in self.MEASURES)
            raise mistake("spec/missing-key", "this rule limits nothing", f"add one of {known}")
        if len(given) > 1:
            both = " and ".join(f"`{m}`" for m in given)
            raise mistake("spec/conflicting-keys", f"{both} are two limits", "one item has one limit", at=given[1])
        return self


class LimitsSpec(Section):
    """Most hardware that the fleet may use."""

    gpus: dict[str, Count] = Field(default_factory=dict)
    """Most GPUs by GPU name."""
    gpu_types: PositiveCount | None = None
    """Most different GPU types in the fleet."""
    power_w: Power | None = Field(None, alias="power")
    """Most power of all nodes that are paid for, such as `120 kW`."""
    rules: tuple[LimitRuleSpec, ...] = ()
    """Limits on selected nodes, such as the quota of a provider in a region."""
