"""Serving engines as the catalog's `engines/<name>.yaml` holds them, picked by version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import Field, Strict

from planner.catalog.base import Record, Text, Whole
from planner.physics.engine_memory import EngineMemory, engine_memory

Generation = Literal["modern", "old", "local"]
Beyond = Literal["", "newer", "older"]
"""On which side of a range of versions one lies, empty inside of it."""
KvPolicy = Literal["reserving", "preempting"]


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the planner knows about one engine at one version.

    `versions` is the measured range whose speed constants apply, and `beyond` tells on which side of it the version lies. `memory.versions` is the range of the memory constants, and `memory_extrapolated` tells that it was not
    measured or does not hold the version. A `reserving` engine admits a request only when the cache of its whole answer
    is free; a `preempting` one takes cache back when it runs out.
    """

    name: str
    version: str
    versions: str
    beyond: Beyond
    generation: Generation
    speed_class_by_vendor: Mapping[str, str]
    kv_policy: KvPolicy
    max_num_seqs: int
    max_num_batched_tokens: int
    memory: EngineMemory
    memory_extrapolated: bool
    source: str

    @property
    def extrapolated(self) -> bool:
        """Tell whether the version lies outside of the measured range of speeds."""
        return self.beyond != ""

    def supports(self, vendor: str) -> bool:
        """Tell whether the engine runs on GPUs of `vendor`."""
        return vendor in self.speed_class_by_vendor

    def speed_class(self, vendor: str) -> str:
        """Return the engine class of the speed model for a vendor, the generation itself when there is none."""
        return self.speed_class_by_vendor.get(vendor, self.generation)


class Versions(Record):
    """A range of versions from `since` up to, not including, `below` (absent: all later)."""

    since: Text
    below: Text | None = None
    measured: bool = True

    def __str__(self) -> str:
        """Return the range in words."""
        return f"{self.since} and later" if self.below is None else f"{self.since} to before {self.below}"


class SpeedRange(Versions):
    """Speed classes by vendor, and defaults of the engine, for a range of versions."""

    generation: Generation
    kv_policy: KvPolicy
    max_num_seqs: Whole
    max_num_batched_tokens: Whole
    speed_class: dict[Text, Text]
    source: Text


class MemoryRange(Versions):
    """Memory constants for a range of versions, as `physics.engine_memory` reads them."""

    constants: dict[str, Any]
    source: str = ""


class EngineFile(Record):
    """The content of `engines/<name>.yaml`: ranges are listed oldest first."""

    name: Text
    newest: Text
    ranges: Annotated[tuple[SpeedRange, ...], Strict(False), Field(min_length=1)]
    memory: Annotated[tuple[MemoryRange, ...], Strict(False), Field(min_length=1)]


class _Ranged(Protocol):
    @property
    def since(self) -> str: ...
    @property
    def below(self) -> str | None: ...
    @property
    def measured(self) -> bool: ...


T = TypeVar("T", bound=_Ranged)


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version for comparison: `0.19.1` is (0, 19, 1), `b6918` is (6918,). Empty without any."""
    release = re.split(r"[-+]|rc|dev|post", version, maxsplit=1)[0]
    return tuple(int(n) for n in re.findall(r"\d{1,9}", release))


def covering(ranges: Sequence[T], version: str) -> T:
    """Return the range that `version` falls in, the nearest end if it falls in none."""
    key = version_key(version)
    inside = [r for r in ranges if version_key(r.since) <= key and (r.below is None or key < version_key(r.below))]
    if inside:
        return inside[0]
    return ranges[0] if key < version_key(ranges[0].since) else ranges[-1]


def measured_near(ranges: Sequence[T], chosen: T) -> T:
    """Return `chosen` if it is measured, else the last measured range before it, else the first after it."""
    position = ranges.index(chosen)
    candidates = [chosen, *reversed(ranges[:position]), *ranges[position + 1 :]]
    return next((r for r in candidates if r.measured), chosen)


def profile(file: EngineFile, version: str) -> EngineProfile:
    """Return the profile of an engine at `version`. Raises `ValueError` for memory constants that cannot be used."""
    speed, memory = covering(file.ranges, version), covering(file.memory, version)
    near = measured_near(file.ranges, speed)
    return EngineProfile(
        name=file.name,
        version=version,
        versions=str(near),
        beyond=_beyond(near, version),
        generation=speed.generation,
        speed_class_by_vendor=speed.speed_class,
        kv_policy=speed.kv_policy,
        max_num_seqs=speed.max_num_seqs,
        max_num_batched_tokens=speed.max_num_batched_tokens,
        memory=engine_memory(file.name, str(memory), memory.constants, memory.source),
        memory_extrapolated=not (memory.measured and _inside(memory, version)),
        source=speed.source,
    )


def _beyond(versions: _Ranged, version: str) -> Beyond:
    if _inside(versions, version):
        return ""
    return "older" if version_key(version) < version_key(versions.since) else "newer"


def _inside(versions: _Ranged, version: str) -> bool:
    key = version_key(version)
    return version_key(versions.since) <= key and (versions.below is None or key < version_key(versions.below))
