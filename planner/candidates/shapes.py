"""Enumerate the shapes of a model on a GPU type, and rule out those that cannot work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from planner.candidates.knowledge import Knowledge
from planner.candidates.rule import Draft, Rule, all_rules
from planner.candidates.types import Rejection, ResolvedModel, Shape, shape_name
from planner.physics.types import Device, Layout

FULL_NODE_GPUS = 8  # only whole nodes of this size or more are joined over a network fast enough for one replica
MOST_NODES_PER_REPLICA = 4
FIT_RULE = "hbm-fit"


def enumerate_shapes(
    model: ResolvedModel, device: Device, node_sizes: Iterable[int], knowledge: Knowledge
) -> tuple[list[Shape], list[Rejection]]:
    """Return the shapes of a model on a GPU type that pass every rule, and a rejection for each that does not.

    Layouts stay inside a node; where none of them holds the model, layouts over whole nodes are tried.
    """
    rules = all_rules()
    node_gpus = max(node_sizes)

    def drafts(layouts: Iterable[Layout]) -> list[Draft]:
        return [
            Draft(model, device, layout, weights, kv_cache, node_gpus)
            for weights, layout, kv_cache in product(model.weights, layouts, model.kv_cache)
        ]

    shapes, rejections = _sift(drafts(list(_layouts(model, node_gpus))), rules, knowledge)
    if not shapes and node_gpus >= FULL_NODE_GPUS and any(r.rule == FIT_RULE for r in rejections):
        spanning, lost = _sift(drafts(list(_node_layouts(model, node_gpus))), rules, knowledge)
        shapes, rejections = _fewest_nodes(spanning), rejections + lost
    return shapes, rejections


def _layouts(model: ResolvedModel, node_gpus: int) -> Iterator[Layout]:
    """Yield layouts inside one node: the spec's degrees, else all tensor degrees, and attention-data for latent MoE."""
    degrees = model.spec.parallelism
    asked = (degrees.pipeline or (1,), degrees.expert or (1,))
    powers = tuple(2**i for i in range(node_gpus.bit_length()) if 2**i <= node_gpus)
    for tensor, data in _tensor_and_data(model, powers):
        for pipeline, expert in product(*asked):
            layout = Layout(tensor, pipeline, expert, data, node_gpus=tensor * pipeline * data)
            if layout.gpus <= node_gpus:
                yield layout


def _tensor_and_data(model: ResolvedModel, powers: tuple[int, ...]) -> list[tuple[int, int]]:
    degrees, architecture = model.spec.parallelism, model.architecture
    tensors = degrees.tensor or powers
    if degrees.attention_data is not None:
        return sorted(product(tensors, degrees.attention_data))
    pairs = [(tensor, 1) for tensor in tensors]
    if architecture.is_mla and architecture.is_moe and 1 in tensors:
        pairs += [(1, data) for data in powers if data > 1]
    return pairs


def _node_layouts(model: ResolvedModel, node_gpus: int) -> Iterator[Layout]:
    """Yield layouts over 2 to 4 whole nodes: tensor parallel inside a node with pipeline stages across, or tensor across."""
    degrees = model.spec.parallelism
    for nodes in range(2, MOST_NODES_PER_REPLICA + 1):
        pipelined = Layout(node_gpus, nodes, node_gpus=node_gpus)
        if _admits(degrees.tensor, node_gpus) and _admits(degrees.pipeline, nodes):
            yield pipelined
        wide = node_gpus * nodes
        if wide & (wide - 1) == 0 and _admits(degrees.tensor, wide) and _admits(degrees.pipeline, 1):
            yield Layout(wide, 1, node_gpus=node_gpus)


def _admits(degrees: tuple[int, ...] | None, degree: int) -> bool:
    return degrees is None or degree in degrees


def _fewest_nodes(shapes: list[Shape]) -> list[Shape]:
    """Keep the shapes that span the fewest nodes: more of them only add network traffic."""
    fewest = min((s.nodes_spanned for s in shapes), default=0)
    return [s for s in shapes if s.nodes_spanned == fewest]


def _sift(drafts: list[Draft], rules: tuple[Rule, ...], knowledge: Knowledge) -> tuple[list[Shape], list[Rejection]]:
    shapes: list[Shape] = []
    rejections: list[Rejection] = []
    for draft in drafts:
        failed = next(((rule, why) for rule in rules if (why := rule.check(draft)) is not None), None)
        shape = _shape(draft, knowledge) if failed is None else None
        if shape is not None:
            shapes.append(shape)
        elif failed is not None:
            rule, why = failed
            short = draft.shortfall_bytes if rule.name == FIT_RULE else 0.0
            label, gpu = _label(draft), draft.device.name
            rejections.append(Rejection(rule.name, draft.model.name, label, gpu, why, short_bytes=short))
    return shapes, rejections


def _shape(draft: Draft, knowledge: Knowledge) -> Shape:
    layout = draft.layout
    engine_class = draft.model.engine.speed_class(draft.device.vendor)
    provenance = knowledge.provenance(draft.model.architecture, draft.device, engine_class, draft.weights)
    node_gpus = layout.node_gpus or layout.gpus
    return Shape(
        model=draft.model.name,
        gpu=draft.device.name,
        layout=layout,
        weights=draft.weights,
        kv_cache=draft.kv_cache,
        node_gpus=node_gpus,
        nodes_spanned=layout.gpus // node_gpus,
        device=draft.device,
        budget=draft.budget,
        max_num_seqs=draft.max_num_seqs,
        quality=draft.model.quality[draft.weights, draft.kv_cache].recovery,
        provenance=provenance,
        throughput_factor=knowledge.factor(provenance, "throughput"),
        ttft_factor=knowledge.factor(provenance, "ttft"),
        measured_factor=knowledge.measured_factor(),
    )


def _label(draft: Draft) -> str:
    return shape_name(draft.device.name, draft.layout, draft.weights, draft.kv_cache)
