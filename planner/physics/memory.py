"""Memory of a replica: formats, weights, KV cache and the HBM budget. The public front of the modules beside it."""

from __future__ import annotations

from planner.physics.adapters import TARGETS, Lora, draft_extras, lora_bytes
from planner.physics.budget import MEDIA_ITEMS, Extras, HbmBudget, Outcome, hbm_budget
from planner.physics.engine_memory import EngineMemory, FractionOf, engine_memory
from planner.physics.footprint import KvFootprint, KvRules, UnknownArchitecture
from planner.physics.formats import (
    KV_FORMATS,
    WEIGHT_FORMATS,
    KvFormat,
    UnknownFormat,
    WeightFormat,
    component_bytes,
    component_formats,
    kv_format,
    weight_format,
)
from planner.physics.kv import kv_bytes, kv_footprint, state_bytes
from planner.physics.weights import ParameterSplit, WeightParts, split_parameters, weight_parts, weights_bytes

__all__ = [
    "KV_FORMATS",
    "MEDIA_ITEMS",
    "TARGETS",
    "WEIGHT_FORMATS",
    "EngineMemory",
    "Extras",
    "FractionOf",
    "HbmBudget",
    "KvFootprint",
    "KvFormat",
    "KvRules",
    "Lora",
    "Outcome",
    "ParameterSplit",
    "UnknownArchitecture",
    "UnknownFormat",
    "WeightFormat",
    "WeightParts",
    "component_bytes",
    "component_formats",
    "draft_extras",
    "engine_memory",
    "hbm_budget",
    "kv_bytes",
    "kv_footprint",
    "kv_format",
    "lora_bytes",
    "split_parameters",
    "state_bytes",
    "weight_format",
    "weight_parts",
    "weights_bytes",
]
