"""Memory of a replica: formats, weights, KV cache and the HBM budget. The public front of the modules beside it."""

from __future__ import annotations

from planner.physics.budget import EngineMemory, FractionOf, HbmBudget, hbm_budget
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
from planner.physics.weights import ParameterSplit, split_parameters, weights_bytes

__all__ = [
    "KV_FORMATS",
    "WEIGHT_FORMATS",
    "EngineMemory",
    "FractionOf",
    "HbmBudget",
    "KvFootprint",
    "KvFormat",
    "KvRules",
    "ParameterSplit",
    "UnknownArchitecture",
    "UnknownFormat",
    "WeightFormat",
    "component_bytes",
    "component_formats",
    "hbm_budget",
    "kv_bytes",
    "kv_footprint",
    "kv_format",
    "split_parameters",
    "state_bytes",
    "weight_format",
    "weights_bytes",
]
