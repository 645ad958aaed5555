"""The fleet spec: YAML in, frozen sections in base units out, every mistake with its place."""

from planner.spec.fleet import CatalogRef, FleetSpec
from planner.spec.lengths import LengthSpec
from planner.spec.limits import LimitRuleSpec, LimitsSpec
from planner.spec.load import LoadedSpec, load_spec
from planner.spec.model import EngineSpec, ModelSpec, ParallelismSpec, PreferSpec
from planner.spec.planning import PlanningSpec
from planner.spec.policies import PolicySpec, WaiveSpec
from planner.spec.policy_file import LoadedPolicies, is_policy_file, load_policies
from planner.spec.reliability import ReliabilitySpec
from planner.spec.selector import Selector
from planner.spec.supply import OfferSpec, SupplySpec
from planner.spec.traffic import RateSpec, SharedPrefixSpec, TokensPerDaySpec, TrafficSpec
from planner.spec.workload import SpotSpec, WorkloadSpec

__all__ = [
    "CatalogRef",
    "EngineSpec",
    "FleetSpec",
    "LengthSpec",
    "LimitRuleSpec",
    "LimitsSpec",
    "LoadedPolicies",
    "LoadedSpec",
    "ModelSpec",
    "OfferSpec",
    "ParallelismSpec",
    "PlanningSpec",
    "PolicySpec",
    "PreferSpec",
    "RateSpec",
    "ReliabilitySpec",
    "Selector",
    "SharedPrefixSpec",
    "SpotSpec",
    "SupplySpec",
    "TokensPerDaySpec",
    "TrafficSpec",
    "WaiveSpec",
    "WorkloadSpec",
    "is_policy_file",
    "load_policies",
    "load_spec",
]
