"""Shapes of models that differ only by name, traffic and supply: enumerated once, their speed folded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.candidates.knowledge import Knowledge
from planner.candidates.pairs import ShapeArrays, step_of
from planner.candidates.shapes import enumerate_shapes
from planner.candidates.types import Rejection, ResolvedModel, Shape
from planner.physics.speed import StepCoefficients, stack
from planner.physics.types import Device, Layout
from planner.spec import ModelSpec, ReliabilitySpec

# Keys of a model that choose among shapes or offers, and change nothing about a shape.
_CHOICES = {
    name: ModelSpec.model_fields[name].get_default(call_default_factory=True)
    for name in ("allow", "deny", "reliability", "checkpoints", "max_shapes", "uniform_format")
}


class Kind:
    """What a model is on a GPU, whoever uses it for what."""

    def __init__(self, plain: ResolvedModel, knowledge: Knowledge) -> None:
        self.plain = plain
        self._knowledge = knowledge
        self._shapes: dict[tuple[str, int], tuple[list[Shape], list[Rejection]]] = {}
        self._steps: dict[tuple[str, Layout, str, str], StepCoefficients] = {}

    def enumerate(self, name: str, device: Device, node_sizes: Iterable[int]) -> tuple[list[Shape], list[Rejection]]:
        """Return `enumerate_shapes` for the model `name` of this kind."""
        largest = max(node_sizes)
        if (device.name, largest) not in self._shapes:
            self._shapes[device.name, largest] = enumerate_shapes(self.plain, device, [largest], self._knowledge)
        shapes, lost = self._shapes[device.name, largest]
        return [replace(s, model=name) for s in shapes], [replace(r, model=name) for r in lost]

    def arrays(self, model: ResolvedModel, shapes: Sequence[Shape]) -> ShapeArrays:
        """Return `ShapeArrays.of` shapes of a model of this kind; `shapes` must not be empty."""
        return ShapeArrays(model, tuple(shapes), stack([self._step(shape) for shape in shapes]))

    def _step(self, shape: Shape) -> StepCoefficients:
        key = (shape.gpu, shape.layout, shape.weights, shape.kv_cache)
        if key not in self._steps:
            self._steps[key] = step_of(self.plain, shape, self._knowledge.constants)
        return self._steps[key]


def kinds_of(models: Mapping[str, ResolvedModel], knowledge: Knowledge) -> dict[str, Kind]:
    """Return the kind of every model; models whose shapes are the same share one."""
    kinds: list[Kind] = []
    found: dict[str, Kind] = {}
    for name, model in models.items():
        plain = replace(model, name="", spec=model.spec.model_copy(update=_CHOICES), reliability=ReliabilitySpec())
        known = next((kind for kind in kinds if kind.plain == plain), None)
        if known is None:
            known = Kind(plain, knowledge)
            kinds.append(known)
        found[name] = known
    return found
