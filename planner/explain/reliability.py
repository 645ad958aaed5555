"""Where the spec sets the reliability of its models."""

from __future__ import annotations

from collections.abc import Iterable

from planner.explain.change import Place
from planner.spec import FleetSpec


def models_by_place(spec: FleetSpec, models: Iterable[str], name: str) -> dict[Place, list[str]]:
    """Return models by the place that sets a key of reliability for them: their own section, or the top level."""
    found: dict[Place, list[str]] = {}
    for model in models:
        own = spec.models[model].reliability
        is_own = own is not None and name in own.model_fields_set
        place: Place = ("models", model, "reliability", name) if is_own else ("reliability", name)
        found.setdefault(place, []).append(model)
    return found
