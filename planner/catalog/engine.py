"""Serving engines as the catalog's `engines/<name>.yaml` holds them, picked by version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from planner.catalog.base import Record, Text

Generation = Literal["modern", "old", "local"]
KvPolicy = Literal["reserving", "preempting"]


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the planner knows about one engine at one version.

    `versions` names the range that applies; `extrapolated` is true when the version lies outside of every measured
    range, so that the nearest one is used. `speed_class_by_vendor` maps NVIDIA, AMD, Intel, Apple to the name of the
    line of engine multipliers in the calibration. `memory` is the engine's memory section for this version, raw.
    """

    name: str
    version: str
    versions: str
    extrapolated: bool
    generation: Generation
    speed_class_by_vendor: Mapping[str, str]
    kv_policy: KvPolicy
    max_num_seqs: int
    max_num_batched_tokens: int
    memory: Mapping[str, Any]
    memory_versions: str
    memory_extrapolated: bool

    def speed_class(self, vendor: str) -> str:
        """Return the engine class for a GPU vendor, falling back to the generation's own line."""
        return self.speed_class_by_vendor.get(vendor, self.generation)


class EngineRange(Record):
    """Defaults and classes for versions from `since` (inclusive) up to `below` (exclusive; absent: all later)."""

    since: Text
    below: Text | None = None
    measured: bool
    generation: Generation
    kv_policy: KvPolicy
    max_num_seqs: int
    max_num_batched_tokens: int
    speed_class: dict[str, str]
    source: Text


class MemoryRange(Record):
    """The memory constants for a range of versions; the content is checked where it is used (`physics.memory`)."""

    since: Text
    below: Text | None = None
    measured: bool = True
    constants: dict[str, Any]
    source: str = ""


class EngineFile(Record):
    """One engine: its newest known release and its version ranges, oldest first."""

    name: Text
    newest: Text
    ranges: tuple[EngineRange, ...]
    memory: tuple[MemoryRange, ...] = ()
