"""Cross-validation: every row is predicted with constants fitted without any log of its model."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog import Catalog
from planner.physics.memory import EngineMemory
from planner.validation.cells import Row
from planner.validation.fit import Fitted, Log, fit, usable_logs, with_constants
from planner.validation.memory import MemoryValidation, validate_memory
from planner.validation.start_up import StartUp


def cross_validate(rows: Sequence[Row], catalog: Catalog) -> MemoryValidation:
    """Score all rows, each with constants fitted to the logs of all other models in `rows`.

    A constant that only logs of the model itself tell is taken from the nearest range of versions that others tell.
    """
    logs = usable_logs(rows, catalog)
    everything = fit(logs)
    by_model: dict[str, list[Fitted]] = {}

    def constants(start: StartUp) -> EngineMemory:
        model = start.arch.name
        if model not in by_model:
            by_model[model] = _without(model, logs, everything)
        return with_constants(start.memory, by_model[model])

    return validate_memory(rows, catalog, constants)


def _without(model: str, logs: Sequence[Log], everything: Sequence[Fitted]) -> list[Fitted]:
    found = fit(log for log in logs if log.start.arch.name != model)
    told = {(f.engine, f.versions, f.constant) for f in found}
    lost = [f for f in everything if (f.engine, f.versions, f.constant) not in told]
    ranges = list(dict.fromkeys((f.engine, f.versions) for f in everything))
    return found + [n for f in lost if (n := _from_neighbour(f, found, ranges)) is not None]


def _from_neighbour(lost: Fitted, found: Sequence[Fitted], ranges: Sequence[tuple[str, str]]) -> Fitted | None:
    """Return the constant of the nearest other range of the same engine, None when no range tells it."""
    at = ranges.index((lost.engine, lost.versions))
    same = [f for f in found if f.engine == lost.engine and f.constant == lost.constant]
    if not same:
        return None
    near = min(same, key=lambda f: abs(ranges.index((f.engine, f.versions)) - at))
    return Fitted(lost.engine, lost.versions, lost.constant, lost.catalog, near.fitted, 0)
