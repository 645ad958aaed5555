"""Inputs of the memory tests: shapes and engine constants from the repository's catalog files, read directly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from planner.catalog.model import ModelEntry
from planner.physics.memory import EngineMemory, engine_memory
from planner.physics.types import Architecture, Device

GIB = 2.0**30
CATALOG = Path(__file__).parents[2] / "catalog"


@cache
def model_shape(name: str) -> Architecture:
    text = (CATALOG / "models" / f"{name}.yaml").read_text()
    return ModelEntry.model_validate(yaml.safe_load(text)).architecture()


def model_names() -> list[str]:
    root = CATALOG / "models"
    return sorted(str(p.relative_to(root)).removesuffix(".yaml") for p in root.rglob("*.yaml"))


@cache
def engine_file(name: str) -> dict[str, list[dict[str, object]]]:
    return yaml.safe_load((CATALOG / "engines" / f"{name}.yaml").read_text())


def engine_constants(name: str, version: str) -> EngineMemory:
    for entry in engine_file(name)["memory"]:
        below = entry.get("below")
        if order(str(entry["since"])) <= order(version) and (below is None or order(version) < order(str(below))):
            return engine_memory(name, str(entry["since"]), entry["constants"], str(entry["source"]))
    raise AssertionError(f"no memory constants for {name} {version}")


def order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("b").split(".")[:2])


def device(usable_gib: float = 79.19, name: str = "H100") -> Device:
    return Device(name, "NVIDIA", "Hopper", usable_gib * GIB, 3.35e12, {"bf16": 989e12}, "nvlink", 450e9, 8, 64e9)
