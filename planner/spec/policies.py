"""Policies: rules on the finished plan, each with a level and an optional waiver."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from planner.spec.fields import (
    Date,
    Duration,
    Increase,
    KvFormats,
    Line,
    Lines,
    Money,
    MoneyPerMtok,
    Share,
    ShareBelowOne,
    WeightFormats,
)
from planner.spec.readers import OneOf, SpecVersion
from planner.spec.refuse import mistake
from planner.spec.section import Section
from planner.spec.selector import Selector
from planner.spec.vocabulary import SPEC_VERSION

Part = Literal["provider", "region", "country", "gpu", "term"]
PARTS: tuple[Part, ...] = ("provider", "region", "country", "gpu", "term")
"""What the cost of a fleet can be divided by."""

_CLASSES = ("A", "B", "C")
_VERDICTS = ("pass", "inconclusive")


class WaiveSpec(Section):
    """An exception to a policy, for a time."""

    reason: Line
    """Why the policy does not hold for now."""
    by: Line
    """Who decided."""
    until: Date
    """Last day of the exception."""


class PolicySelector(Selector):
    """What a policy is about: nodes that are paid for, formats of the pools. Every list that is given must match."""

    weights: WeightFormats = ()
    """Weight formats of pools."""
    kv_cache: KvFormats = ()
    """Formats of their cached keys and values."""

    @property
    def names_nodes(self) -> bool:
        """Tell whether something is said about nodes."""
        return not super().is_any

    @property
    def names_formats(self) -> bool:
        """Tell whether something is said about formats."""
        return bool(self.weights or self.kv_cache)

    @property
    def is_any(self) -> bool:
        """Tell whether nothing is restricted."""
        return not self.names_nodes and not self.names_formats


class ShareSpec(Section):
    """A limit on a share of the cost: of all nodes that match, or of each provider, region, country, GPU or term."""

    match: Selector | None = None
    """Nodes whose share is limited, all of them together."""
    each: Annotated[Part, OneOf("part of the cost", PARTS)] | None = None
    """In place of `match`: the share of every single one, such as `provider`."""
    share: Share
    """Most share of the cost of the whole fleet, such as `60 %`."""

    @model_validator(mode="after")
    def check_one_form(self) -> Self:
        """Require exactly one of `match` and `each`."""
        if self.match is None and self.each is None:
            raise mistake("spec/missing-key", "this share is of nothing", "add `match` or `each`")
        if self.match is not None and self.each is not None:
            raise mistake(
                "spec/conflicting-keys", "`match` and `each` both say whose share", "keep one of them", at="each"
            )
        return self


class PolicySpec(Section):
    """One rule on the finished plan."""

    RULES: ClassVar[tuple[str, ...]] = (
        "max_monthly_cost",
        "max_monthly_cost_increase",
        "max_cost_per_million_tokens",
        "max_share",
        "max_price_age",
        "max_gap",
        "min_latency_margin",
        "min_capacity_margin",
        "min_provenance",
        "min_certificate",
        "forbid",
        "require",
    )
    ABOUT_WORKLOADS: ClassVar[tuple[str, ...]] = (
        "max_cost_per_million_tokens",
        "min_latency_margin",
        "min_capacity_margin",
    )

    id: Line | None = None
    """Name of the policy in reports; default: the rule's name."""
    level: Annotated[Literal["deny", "warn"], OneOf("level", ("deny", "warn"))] = "deny"
    """Whether a broken rule fails the run or warns."""
    waive: WaiveSpec | None = None
    """An exception to this policy."""
    workloads: Lines = ()
    """Workloads that a rule about workloads is for, `*` and `?` as in file names; default: all."""
    max_monthly_cost_usd: Money | None = Field(None, alias="max_monthly_cost")
    """Most cost per month, such as `400000 USD`."""
    max_monthly_cost_increase: Increase | None = None
    """Most rise of the monthly cost against a baseline plan, such as `15 %`."""
    max_usd_per_million_tokens: MoneyPerMtok | None = Field(None, alias="max_cost_per_million_tokens")
    """Most cost per million tokens, input and output, of any workload, such as `0.80 USD/Mtok`."""
    max_share: ShareSpec | None = None
    """Most share of the cost, such as `{each: provider, share: 60 %}`."""
    max_price_age_s: Duration | None = Field(None, alias="max_price_age")
    """Greatest age of the list prices that are paid, such as `30 day`; own prices have no age."""
    max_gap: ShareBelowOne | None = None
    """Greatest distance from the proven bound, such as `1 %`."""
    min_latency_margin: ShareBelowOne | None = None
    """Least share of every latency limit that the prediction leaves, such as `5 %`."""
    min_capacity_margin: Increase | None = None
    """Least growth of the demand of any workload that the fleet bears, such as `10 %`, the others as planned."""
    min_provenance: Annotated[str, OneOf("provenance class", _CLASSES)] | None = None
    """Least class of knowledge behind the predicted speed of any pool: A, B or C; D is none."""
    min_certificate: Annotated[str, OneOf("verdict", _VERDICTS)] | None = None
    """Least verdict of the replay that certifies the plan: `pass`, or `inconclusive`."""
    forbid: PolicySelector | None = None
    """Nodes and formats that no plan may use."""
    require: PolicySelector | None = None
    """What all nodes that are paid for and all pools must match."""

    @property
    def rule(self) -> str:
        """The one rule of this policy, as written in the spec."""
        return next(rule for rule, value in self._rules() if value is not None)

    @property
    def value(self) -> Any:
        """What the rule is given: a number in base units, a word or a section."""
        return next(value for _, value in self._rules() if value is not None)

    @property
    def label(self) -> str:
        """The id, or the rule's name."""
        return self.id or self.rule

    def _rules(self) -> list[tuple[str, Any]]:
        fields = ((field.alias or name, name) for name, field in type(self).model_fields.items())
        return [(key, getattr(self, name)) for key, name in fields if key in self.RULES]

    @model_validator(mode="after")
    def check_rule(self) -> Self:
        """Require exactly one rule, and one that says something."""
        rules = [rule for rule, value in self._rules() if value is not None]
        known = ", ".join(f"`{rule}`" for rule in self.RULES)
        if not rules:
            raise mistake("spec/missing-key", "this policy has no rule", f"add one of {known}")
        if len(rules) > 1:
            both = " and ".join(f"`{rule}`" for rule in rules)
            raise mistake("spec/conflicting-keys", f"{both} are two rules", "one item has one rule", at=rules[1])
        if self.workloads and self.rule not in self.ABOUT_WORKLOADS:
            about = f"`{self.rule}` is about the whole fleet"
            raise mistake("spec/conflicting-keys", about, "remove this key", at="workloads")
        for rule, empty in (("forbid", "forbids everything"), ("require", "requires nothing")):
            if self.rule == rule and self.value.is_any:
                raise mistake("spec/empty", f"`{rule}` without a list {empty}", f"name what to {rule}", at=rule)
        return self


class PolicyFile(Section):
    """A file of policies beside the specs, owned by those who review them."""

    TITLE: ClassVar[str] = "a file of policies"

    version: Annotated[int, SpecVersion()] = SPEC_VERSION
    """Version of this grammar: 1."""
    policies: tuple[PolicySpec, ...]
    """Rules on the finished plan, added to those of a spec."""
