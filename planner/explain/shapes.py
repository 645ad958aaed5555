"""Limits that the candidates of a model are rated with: what is to be survived, and settings of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from planner.explain.change import Place, is_given, with_value
from planner.explain.limit import LEAST_SHARE, Limit
from planner.explain.reliability import models_by_place
from planner.explain.trials import Trials, unserved
from planner.program.data import FleetProblem
from planner.solve.outcome import Solution
from planner.spec import EngineSpec, FleetSpec
from planner.spec.vocabulary import SURVIVE

ENGINE = EngineSpec()
"""What an engine is set to where the spec does not say."""
STEPS: Mapping[str, float] = {"max_num_seqs": 1.0, "gpu_memory_utilization": LEAST_SHARE, "prefix_caching": 1.0}
"""Settings that only ever take capacity away, and the distance between values that are tried."""


def shape_limits(spec: FleetSpec, trials: Trials) -> Iterator[Limit]:
    """Yield what is to be survived, and the settings of engines that take capacity away, by the keys that set them."""
    models = sorted({w.model for w in spec.workloads.values()})
    for place, own in models_by_place(spec, models, "survive").items():
        level = max(SURVIVE.index(spec.reliability_of(m).survive) for m in own)
        if level > 0:
            yield _survived(place, level)
    for name in STEPS:
        for place, own in _places_of(spec, models, name).items():
            limit = _setting(spec, place, own, name)
            if limit.free is not None and not unserved(trials.table(limit.free(spec))):
                yield limit


def _survived(place: Place, level: int) -> Limit:
    return Limit(
        place,
        level,
        lambda _problem, _found: [0.0],
        lambda s, value: with_value(s, place, SURVIVE[int(value)]),
        lambda value: SURVIVE[int(value)],
        free=lambda s: with_value(s, place, SURVIVE[0]),
    )


def is_stricter(engine: EngineSpec, name: str) -> bool:
    """Tell whether the spec sets an engine to less than it may use by default."""
    own, default = getattr(engine, name), getattr(ENGINE, name)
    return own is not None and (default is None or own < default)


def _places_of(spec: FleetSpec, models: Iterable[str], name: str) -> dict[Place, list[str]]:
    """Return the models that a setting limits by the place that sets it: their own section, or the defaults."""
    found: dict[Place, list[str]] = {}
    common: Place = ("defaults", "engine", name)
    for model in models:
        engine = spec.models[model].engine
        if not is_stricter(engine, name):
            continue
        is_common = is_given(spec, common) and getattr(spec.defaults.engine, name) == getattr(engine, name)
        found.setdefault(common if is_common else ("models", model, "engine", name), []).append(model)
    return found


def _setting(spec: FleetSpec, place: Place, models: Sequence[str], name: str) -> Limit:
    now = getattr(spec.models[models[0]].engine, name)

    def needed(p: FleetProblem, found: Solution) -> list[float]:
        if name != "max_num_seqs":
            return [getattr(ENGINE, name)]
        caps = [c.batch_slots for m in models for c in p.columns_of(m) if found.replicas.get(c.name, 0) > 0]
        return [max(now, *caps)]

    return Limit(
        place,
        now,
        needed,
        partial(_set, models, name, type(now)),
        lambda value: setting_text(type(now)(value)),
        free=lambda s: _set(models, name, lambda value: value, s, getattr(ENGINE, name)),
        step=STEPS[name],
    )


def _set(models: Sequence[str], name: str, kind: Callable[[float], object], spec: FleetSpec, value: float) -> FleetSpec:
    """Return a spec with a setting of the engine of some models."""
    for model in models:
        spec = with_value(spec, ("models", model, "engine", name), kind(value))
    return spec


def setting_text(value: object) -> str:
    """Write a setting of an engine as the spec does."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else f"{value}"
