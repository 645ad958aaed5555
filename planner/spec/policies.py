"""Policies: rules on the finished plan, each with a level and an optional waiver."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from planner.spec.fields import Date, Increase, Line, Money
from planner.spec.readers import OneOf, Planned
from planner.spec.refuse import mistake
from planner.spec.section import Section
from planner.spec.selector import Selector

RuleName = Literal["max_monthly_cost", "max_monthly_cost_increase", "forbid"]


class WaiveSpec(Section):
    """An exception to a policy, for a time."""

    reason: Line
    """Why the policy does not hold for now."""
    by: Line
    """Who decided."""
    until: Date
    """Last day of the exception."""


class PolicySpec(Section):
    """One rule on the finished plan."""

    RULES: ClassVar[tuple[str, ...]] = ("max_monthly_cost", "max_monthly_cost_increase", "min_latency_margin", "forbid")

    id: Line | None = None
    """Name of the policy in reports; default: the rule's name."""
    level: Annotated[Literal["deny", "warn"], OneOf("level", ("deny", "warn"))] = "deny"
    """Whether a broken rule fails the run or warns."""
    waive: WaiveSpec | None = None
    """An exception to this policy."""
    max_monthly_cost_usd: Money | None = Field(None, alias="max_monthly_cost")
    """Most cost per month, such as `400000 USD`."""
    max_monthly_cost_increase: Increase | None = None
    """Most rise of the monthly cost against a baseline plan, such as `15 %`."""
    min_latency_margin: Annotated[None, Planned("`min_latency_margin`")] = None
    """Least distance of predicted latencies from their objectives. Not supported yet."""
    forbid: Selector | None = None
    """Offers and GPUs that no plan may use."""

    @property
    def rule(self) -> RuleName:
        """The one rule of this policy, as written in the spec."""
        if self.max_monthly_cost_usd is not None:
            return "max_monthly_cost"
        return "max_monthly_cost_increase" if self.max_monthly_cost_increase is not None else "forbid"

    @property
    def label(self) -> str:
        """The id, or the rule's name."""
        return self.id or self.rule

    @model_validator(mode="after")
    def check_rule(self) -> Self:
        """Require exactly one rule."""
        keys = {"max_monthly_cost_usd": "max_monthly_cost"}
        given = [keys.get(name, name) for name in type(self).model_fields if name in self.model_fields_set]
        rules = [key for key in given if key in self.RULES]
        known = ", ".join(f"`{rule}`" for rule in self.RULES)
        if not rules:
            raise mistake("spec/missing-key", "this policy has no rule", f"add one of {known}")
        if len(rules) > 1:
            both = " and ".join(f"`{rule}`" for rule in rules)
            raise mistake("spec/conflicting-keys", f"{both} are two rules", "one item has one rule", at=rules[1])
        if self.forbid is not None and self.forbid.is_any:
            raise mistake(
                "spec/empty", "`forbid` without a list forbids everything", "name what to forbid", at="forbid"
            )
        return self
