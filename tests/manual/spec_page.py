"""The reference of the spec's keys, read from the grammar: key, value with unit, default, meaning."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from planner.spec.api import ApiSpec
from planner.spec.deployed import DeployedSpec
from planner.spec.fleet import CatalogRef, FleetSpec
from planner.spec.lengths import LengthSpec
from planner.spec.limits import LimitRuleSpec, LimitsSpec
from planner.spec.model import EngineSpec, ModelSpec, ParallelismSpec, PreferSpec
from planner.spec.planning import PlanningSpec
from planner.spec.policies import PolicySelector, PolicySpec, ShareSpec, WaiveSpec
from planner.spec.readers import (
    Flag,
    HardwarePrice,
    IsoDate,
    Number,
    OneOf,
    Planned,
    Quantity,
    Scalar,
    SpecVersion,
    Text,
)
from planner.spec.reliability import ReliabilitySpec
from planner.spec.schema import field_texts
from planner.spec.section import Section
from planner.spec.selector import Selector
from planner.spec.supply import OfferSpec, SupplySpec
from planner.spec.traffic import RateSpec, SharedPrefixSpec, TokensPerDaySpec, TrafficSpec
from planner.spec.workload import SpotSpec, WorkloadSpec
from planner.units import DIMENSIONS, legal_units

SECTIONS: tuple[tuple[str, type[Section]], ...] = (
    ("the spec", FleetSpec),
    ("catalog", CatalogRef),
    ("models.NAME", ModelSpec),
    ("models.NAME.engine", EngineSpec),
    ("models.NAME.parallelism", ParallelismSpec),
    ("models.NAME.prefer", PreferSpec),
    ("selectors", Selector),
    ("workloads.NAME", WorkloadSpec),
    ("workloads.NAME.spot", SpotSpec),
    ("workloads.NAME.compare_api", ApiSpec),
    ("workloads.NAME.traffic", TrafficSpec),
    ("traffic.rate", RateSpec),
    ("traffic.tokens_per_day", TokensPerDaySpec),
    ("traffic.input_tokens, output_tokens", LengthSpec),
    ("traffic.shared_prefix", SharedPrefixSpec),
    ("supply", SupplySpec),
    ("supply.offers[]", OfferSpec),
    ("supply.limits", LimitsSpec),
    ("supply.limits.rules[]", LimitRuleSpec),
    ("reliability", ReliabilitySpec),
    ("planning", PlanningSpec),
    ("policies[]", PolicySpec),
    ("policies[].forbid, require", PolicySelector),
    ("policies[].max_share", ShareSpec),
    ("policies[].waive", WaiveSpec),
    ("deployed[]", DeployedSpec),
)
SHARES = ("share", "ratio", "change")


class Key(NamedTuple):
    """One row of the reference."""

    name: str
    value: str
    default: str
    meaning: str


def keys_part() -> str:
    """Return one table for each section of the grammar."""
    return "\n".join(line for title, section in SECTIONS for line in _section(title, section))


def keys_of(section: type[Section]) -> list[Key]:
    """Return the keys of a section in declared order."""
    meanings = field_texts(section)
    return [
        Key(field.alias or name, _value(field.annotation, field.metadata), _default(field), meanings[name])
        for name, field in section.model_fields.items()
    ]


def sections_of(section: type[Section]) -> set[type[Section]]:
    """Return a section with every section below it."""
    found = {section}
    for field in section.model_fields.values():
        for below in _sections_in(field.annotation):
            found |= sections_of(below)
    return found


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections_in(argument)


def _section(title: str, section: type[Section]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield " ".join((section.__doc__ or "").split())
    yield ""
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key in keys_of(section):
        yield f"| `{key.name}` | {key.value} | {key.default} | {key.meaning} |"
    yield ""


def _value(annotation: Any, metadata: list[Any]) -> str:
    """Describe what may stand in YAML."""
    reader = next((m for m in metadata if isinstance(m, Scalar)), None)
    if reader is not None:
        return _DESCRIBERS[type(reader)](reader)
    if get_origin(annotation) is Annotated:
        inner, *extra = get_args(annotation)
        return _value(inner, extra)
    if get_origin(annotation) in (Union, types.UnionType):
        return next(_value(a, []) for a in get_args(annotation) if a is not type(None))
    if get_origin(annotation) is tuple:
        return f"list: {_value(get_args(annotation)[0], [])}"
    if get_origin(annotation) is dict:
        key, value = (_value(a, []) for a in get_args(annotation))
        return f"mapping of {key} to {value}"
    if annotation is str:
        return "a name"
    return f"a mapping, see [{_title_of(annotation)}](#{_anchor(_title_of(annotation))})"


def _title_of(section: type[Section]) -> str:
    return next(title for title, known in SECTIONS if known is section)


def _anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _quantity(reader: Quantity) -> str:
    dimension = DIMENSIONS[reader.dimension]
    kind = "a whole number" if reader.whole else dimension.noun
    units = legal_units(reader.dimension).replace("a number, with k, M or G", "k, M, G allowed")
    bounds = f", {reader.bounds}" if reader.bounds else ""
    return f"{kind} ({units}){bounds}"


def _one_of(reader: OneOf) -> str:
    words = ", ".join(f"`{word}`" for word in reader.words)
    return f"one of {words}" if len(reader.words) > 1 else words


def _text(reader: Text) -> str:
    return reader.must_be or "text"


_DESCRIBERS: dict[type[Scalar], Callable[[Any], str]] = {
    Quantity: _quantity,
    OneOf: _one_of,
    Text: _text,
    Number: lambda reader: f"a number, {reader.bounds}",
    Flag: lambda _: "`true` or `false`",
    IsoDate: lambda _: "a date such as `2027-09-30`",
    HardwarePrice: lambda _: "a price in USD/gpu/h or USD/node/h",
    SpecVersion: lambda _: "`1`",
    Planned: lambda _: "not supported yet",
}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), {}) or isinstance(value, Section):
        return "-"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    is_share = any(isinstance(m, Quantity) and m.dimension in SHARES for m in field.metadata)
    return f"`{100 * value:g} %`" if is_share else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
