"""Build the candidate table of a spec: resolve, enumerate, rate, prune."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from planner.candidates.dominance import DOMINATED_RULE, kept_candidates
from planner.candidates.kinds import Kind, kinds_of
from planner.candidates.knowledge import Knowledge
from planner.candidates.models import model_assumptions, resolve_models
from planner.candidates.rating import rate_shapes
from planner.candidates.selection import admits
from planner.candidates.supply import build_supply
from planner.candidates.traffic import resolve_workloads, workload_assumptions
from planner.candidates.types import (
    Assumption,
    Candidate,
    CandidateTable,
    Domain,
    PricedOffer,
    Rejection,
    ResolvedModel,
    ResolvedWorkload,
    Shape,
    Supply,
)
from planner.catalog import Catalog
from planner.parallel import LEAST_MODELS_SHARED_OUT, in_order
from planner.spec import FleetSpec

SELECTOR_RULE = "selector"
NOWHERE = "no nodes on offer that hold it are allowed for any workload that it serves"
Cells = Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]]
Rated = tuple[list[Candidate], list[Rejection], dict[str, str]]
Memo = dict[str, Rated]
"""What the models of earlier specs were rated to, for variants of a spec that leave most models as they are."""
Running = Mapping[str, frozenset[str]]
"""Names of the shapes that run already, by model."""
NOTHING_RUNS: Running = MappingProxyType({})
HeldTo = Mapping[str, frozenset[str]]
"""Names of the offers that a workload is held to, by workload."""
NOWHERE_HELD: HeldTo = MappingProxyType({})


def build_table(
    spec: FleetSpec,
    catalog: Catalog,
    knowledge: Knowledge,
    memo: Memo | None = None,
    running: Running = NOTHING_RUNS,
    held_to: HeldTo = NOWHERE_HELD,
) -> CandidateTable:
    """Return every candidate of a spec with the supply it may use, and every rejection.

    With a `memo`, which belongs to one catalog and confidence, models that were rated before are not rated again. Shapes
    that are `running` are candidates even where others replace them. Workloads in `held_to` are served on those offers only.
    """
    models = resolve_models(spec, catalog)
    workloads = resolve_workloads(spec, models)
    supply = build_supply(spec, catalog)
    admitted = {o.name: _admitted(o, spec, workloads, catalog, held_to) for o in supply.offers}
    kinds = kinds_of(models, knowledge)
    shapes, rejections = _shapes(kinds, workloads, supply, admitted, catalog)
    spanning = {s.gpu for group in shapes.values() for s in group if s.nodes_spanned > 1}
    failures: set[str] = {m.reliability.survive for m in models.values()}
    supply = replace(supply, offers=_in_cells(supply.offers, admitted, spanning, failures))
    domains = {o.cell: _domain(o, failures) for o in supply.offers}
    cells = _cells(supply.offers, admitted)
    node_sizes = _node_sizes(supply.offers)
    served = {name: [w for w in workloads.values() if w.model == name] for name in models}
    keys = {
        name: _rating_key(models[name], served[name], shapes[name], cells, node_sizes, domains, running)
        for name in models
        if served[name] and shapes[name]
    }
    known = {} if memo is None else memo
    unrated = [name for name, key in keys.items() if key not in known]

    def rated(name: str) -> Rated:
        model = models[name]
        own, arrays = running.get(name, frozenset()), kinds[name].arrays(model, shapes[name])
        found, lost = rate_shapes(arrays, served[name], cells, node_sizes, domains, own)
        kept, replaced = kept_candidates(found, model.reliability, own)
        return kept, lost, replaced

    ratings = in_order(rated, unrated, least_items=LEAST_MODELS_SHARED_OUT)
    known |= {keys[name]: found for name, found in zip(unrated, ratings, strict=True)}
    candidates: list[Candidate] = []
    for name, key in keys.items():
        kept, lost, replaced = known[key]
        own = {shape.name: shape for shape in shapes[name]}
        candidates += [replace(c, shape=own[c.shape.name]) for c in kept]  # what workers return are copies
        rejections += lost
        rejections += _dominated(shapes[name], kept, lost, replaced)
    candidates.sort(key=lambda c: c.name)
    rejections += supply.rejections
    rejections.sort(key=lambda r: (r.model, r.gpu, r.shape, r.workload, r.rule))
    return CandidateTable(
        models=models,
        workloads=workloads,
        supply=supply,
        candidates=tuple(candidates),
        rejections=tuple(rejections),
        rejection_counts=dict(sorted(Counter(r.rule for r in rejections).items())),
        assumptions=tuple(_assumptions(models, workloads, shapes, supply, knowledge)),
        held_to=dict(held_to),
    )


def _admitted(
    offer: PricedOffer,
    spec: FleetSpec,
    workloads: Mapping[str, ResolvedWorkload],
    catalog: Catalog,
    held_to: HeldTo,
) -> tuple[str, ...]:
    """Return the workloads that an offer may serve: by selectors of workload and model, by `spot`, and where held to it."""
    return tuple(
        name
        for name, workload in workloads.items()
        if admits(spec.models[workload.model].allow, spec.models[workload.model].deny, offer, catalog)
        and admits(workload.spec.allow, workload.spec.deny, offer, catalog)
        and (workload.spec.spot is not None or not offer.is_spot)
        and (name not in held_to or offer.name in held_to[name])
    )


def _shapes(
    kinds: Mapping[str, Kind],
    workloads: Mapping[str, ResolvedWorkload],
    supply: Supply,
    admitted: Mapping[str, tuple[str, ...]],
    catalog: Catalog,
) -> tuple[dict[str, list[Shape]], list[Rejection]]:
    """Enumerate the shapes of every model on every GPU type that some offer admits for it."""
    shapes: dict[str, list[Shape]] = {}
    rejections: list[Rejection] = []
    devices = {gpu: catalog.gpu(gpu).device() for gpu in sorted({o.gpu for o in supply.offers})}
    for name, kind in kinds.items():
        shapes[name] = []
        sizes: dict[str, set[int]] = defaultdict(set)
        for offer in supply.offers:
            if any(workloads[w].model == name for w in admitted[offer.name]):
                sizes[offer.gpu].add(offer.gpus_per_node)
        for gpu, device in devices.items():
            if gpu not in sizes:
                why = "no offer of this GPU is allowed by allow, deny and spot"
                rejections.append(Rejection(SELECTOR_RULE, name, "", gpu, why))
                continue
            found, lost = kind.enumerate(name, device, sizes[gpu])
            shapes[name] += found
            rejections += lost
    return shapes, rejections


def _in_cells(
    offers: Sequence[PricedOffer], admitted: Mapping[str, tuple[str, ...]], spanning: set[str], failures: set[str]
) -> tuple[PricedOffer, ...]:
    """Put each offer in its supply cell: same GPU type, same workloads admitted, failing alike.

    Where replicas span nodes a cell is one site.
    """

    def key(o: PricedOffer) -> tuple[str, tuple[str, ...], str, Domain]:
        return o.gpu, admitted[o.name], o.site if o.gpu in spanning else "", _domain(o, failures)

    groups = sorted({key(o) for o in offers})
    several = Counter(gpu for gpu, *_ in groups)
    names = {
        group: group[0]
        if several[group[0]] == 1
        else f"{group[0]}#{sum(1 for g in groups[:i] if g[0] == group[0]) + 1}"
        for i, group in enumerate(groups)
    }
    return tuple(replace(o, cell=names[key(o)]) for o in offers)


def _domain(offer: PricedOffer, failures: set[str]) -> Domain:
    """Return what fails with the nodes of an offer, as far as some model is to survive that."""
    zone = offer.zone if "zone" in failures else ""
    return Domain(offer.is_spot, zone, offer.gpus_per_node if "node" in failures else 0)


def _cells(offers: Sequence[PricedOffer], admitted: Mapping[str, tuple[str, ...]]) -> Cells:
    """Return the cells by (GPU type, workloads admitted)."""
    found: dict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
    for offer in offers:
        if admitted[offer.name]:
            found[offer.gpu, admitted[offer.name]].add(offer.cell)
    return {key: tuple(sorted(found[key])) for key in sorted(found)}


def _node_sizes(offers: Sequence[PricedOffer]) -> dict[str, frozenset[int]]:
    """Return the GPUs per node on offer by cell."""
    sizes: dict[str, set[int]] = defaultdict(set)
    for offer in offers:
        sizes[offer.cell].add(offer.gpus_per_node)
    return {cell: frozenset(found) for cell, found in sorted(sizes.items())}


def _rating_key(
    model: ResolvedModel,
    served: Sequence[ResolvedWorkload],
    shapes: Sequence[Shape],
    cells: Cells,
    node_sizes: Mapping[str, frozenset[int]],
    domains: Mapping[str, Domain],
    running: Running,
) -> str:
    """Return all that the rating of a model depends on, within one catalog and confidence."""
    asked = [(w.name, w.spec.model_dump_json()) for w in served]
    where = [(s.name, s.node_gpus) for s in shapes]
    runs = sorted(running.get(model.name, ()))
    own = (model.name, model.spec.model_dump_json(), model.reliability)
    return repr((*own, asked, where, cells, node_sizes, domains, runs))


def _dominated(
    shapes: Sequence[Shape], kept: Sequence[Candidate], rejections: Sequence[Rejection], replaced: Mapping[str, str]
) -> list[Rejection]:
    """Return a rejection for each shape that was rated but left no candidate and has no rejection yet."""
    alive = {c.shape.name for c in kept}
    known = {(r.model, r.shape) for r in rejections}
    return [
        Rejection(DOMINATED_RULE, s.model, s.name, s.gpu, replaced.get(s.name, NOWHERE))
        for s in shapes
        if s.name not in alive and (s.model, s.name) not in known
    ]


def _assumptions(
    models: dict[str, ResolvedModel],
    workloads: dict[str, ResolvedWorkload],
    shapes: Mapping[str, Sequence[Shape]],
    supply: Supply,
    knowledge: Knowledge,
) -> list[Assumption]:
    own = {name: _own_speed(model, shapes[name], knowledge) for name, model in models.items()}
    confidence = Assumption(
        "planning.confidence",
        f"{knowledge.confidence * 100:.0f} %: predicted times are multiplied by what this share of measured deployments stays under",
        "catalog/calibration/default.yaml",
    )
    measured = [confidence, *_own_measurements(knowledge)]
    return [*model_assumptions(models, own), *workload_assumptions(workloads), *measured, *supply.assumptions]


def _own_speed(model: ResolvedModel, shapes: Sequence[Shape], knowledge: Knowledge) -> tuple[str, ...]:
    """Return for which formats and GPUs of a model its own measurements decide the speed, and which these are."""
    found: list[str] = []
    devices = {(shape.gpu, shape.weights): shape.device for shape in shapes}
    for (gpu, weights), device in sorted(devices.items(), key=lambda item: item[0]):
        own = knowledge.own_rows(model.architecture, device, model.engine.speed_class(device.vendor), weights)
        if own is not None and own.same:
            found.append(f"{weights} weights on {gpu}: {own}")
    return tuple(found)


def _own_measurements(knowledge: Knowledge) -> list[Assumption]:
    own = [row for row in knowledge.coverage.rows if row.own]
    if not own:
        return []
    gpus = ", ".join(sorted({row.gpu for row in own}))
    files = ", ".join(f"catalog/calibration/{name}.yaml" for name in sorted({row.calibration for row in own}))
    value = f"{sum(row.rows for row in own):,} own measurements on {gpus} are put over the shipped constants"
    return [Assumption("calibration", value, files)]
