"""Workloads: a class of traffic of one model, with its latency objectives."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from planner.spec.api import ApiSpec
from planner.spec.fields import Bool, Duration, Line, PositiveShare
from planner.spec.readers import OneOf, Planned
from planner.spec.section import Section
from planner.spec.selector import Selector
from planner.spec.traffic import TrafficSpec
from planner.spec.vocabulary import SLO_METRICS

_MEANING = {
    "ttft": "Time to first token",
    "tpot": "Time per output token after the first",
    "itl": "Time between two tokens of one request",
    "e2e": "Time from arrival to the last token",
}


class _SloSchema:
    """Shows editors one described property per objective instead of a pattern of keys."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        values = handler(schema)["additionalProperties"]
        properties = {
            metric: values | {"description": f"{_MEANING[metric.split('_')[0]]}, {metric.split('_')[1]}: at most this."}
            for metric in SLO_METRICS
        }
        return {"type": "object", "properties": properties, "additionalProperties": False}


SloMetric = Annotated[str, OneOf("latency objective", SLO_METRICS)]


class SpotSpec(Section):
    """How far a workload may be served on spot nodes, which can be taken away at any time."""

    max_share: PositiveShare = 1.0
    """Most share of its rate on spot nodes; pools on other nodes serve the rest."""
    on_demand_floor: Bool = True
    """Whether the rest stays off spot nodes also while spares or a zone are lost."""


class WorkloadSpec(Section):
    """Traffic of one model with its latency objectives."""

    model: Line
    """Name of the model under `models` that serves this workload."""
    traffic: TrafficSpec
    """How many requests, when and how long."""
    slo: Annotated[dict[SloMetric, Duration], _SloSchema()] = Field(default_factory=dict)
    """Latency objectives, such as `ttft_p95: 500 ms`; none means that only throughput counts."""
    allow: Selector = Selector()
    """Only use offers that match."""
    deny: Selector = Selector()
    """Never use offers that match all of these lists."""
    priority: Annotated[None, Planned("`priority`")] = None
    """Not supported yet."""
    spot: SpotSpec | None = None
    """Allows spot nodes; without it, none of them serves this workload."""
    deadline: Annotated[None, Planned("`deadline`")] = None
    """Not supported yet."""
    compare_api: ApiSpec | None = None
    """Prices of an API to compare the cost of the fleet with."""
    growth: Annotated[None, Planned("`growth`")] = None
    """Not supported yet."""
    images: Annotated[None, Planned("`images`")] = None
    """Not supported yet."""
    lora: Annotated[None, Planned("`lora`")] = None
    """Not supported yet."""
