"""From ratings to candidates: what a request costs at the operating batch, and where such pools may lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.candidates.pairs import Indices, ShapeArrays, kv_load, make_pairs, pair_indices
from planner.candidates.rating_types import PoolRating, SharedRating
from planner.candidates.types import (
    Array,
    Candidate,
    Domain,
    ResolvedModel,
    ResolvedWorkload,
    Service,
    Shape,
    replicas_on_node,
)
from planner.physics.latency import throughput
from planner.physics.speed import StepCoefficients, step_bytes, step_flops

SLOT_DEVIATIONS = 8.0  # room above the mean batch: 4 deviations, twice as wide as Poisson's where the flow is elastic
BATCH_VARIANCE_FACTOR = 1.5  # variance of the running batch over that of Poisson arrivals (LPS closed form)
SHARING_MARGIN = 1.001  # the rating of a mix stays this much below the limit, for the slots that the cap takes away
LEAST_SEQUENCES = 1e-6
LEAST_DECODES = 1e-9

Cells = Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True)
class _Point:
    """An operating point: a shape, the least pool, the workloads served, the mean batch, and rates there when alone.

    `factor` is what sharing costs beyond that: at the mix, requests take this much more replica time; below 1, they share
    steps, and what these stream.
    `widest_batch` is the largest mean batch of the group and of any workload of it alone, for a lone replica that at which its
    limits are judged: the batch cap must allow it.
    `mix` holds the shares of the requests of a group, and is that of one workload where it is alone.
    """

    shape: int
    replicas: int
    served: tuple[int, ...]
    batch: float
    kv_pool_bytes: float
    factor: float
    rates: tuple[float, ...]
    widest_batch: float
    mix: tuple[float, ...] = (1.0,)

    @property
    def mix_label(self) -> str:
        """Tell apart the candidates of one group at different mixes; nothing for one workload."""
        return "" if len(self.served) == 1 else "@" + ":".join(f"{share:.4g}" for share in self.mix)


def candidates_of(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    pools: Sequence[PoolRating],
    shared: Sequence[SharedRating],
    cells: Cells,
    node_sizes: Mapping[str, frozenset[int]],
    domains: Mapping[str, Domain],
) -> list[Candidate]:
    """Return a candidate for every rating and every domain with cells that admit its workloads.

    A rating that counts on pooling must hold with the spares gone: such a candidate needs that many more replicas. Where a
    node is to be survived, a pool has at least the replicas of one: with less, two pools on a node could fail together.
    """
    spares = arrays.model.reliability.spare_replicas
    streams = np.asarray(arrays.step.streams)
    bandwidth, flops = arrays.step.achievable_bytes_per_s * streams, arrays.step.achievable_flops_per_s * streams
    places: dict[tuple[str, int, int, tuple[int, ...]], list[tuple[Domain, tuple[str, ...]]]] = {}
    points = _alone(arrays, workloads, pools) + _together(arrays, workloads, pools, shared)
    if not points:
        return []
    found: list[Candidate] = []
    for point, services in zip(points, _services(arrays, workloads, points), strict=True):
        shape = arrays.shapes[point.shape]
        place = (shape.gpu, shape.node_gpus, shape.nodes_spanned, point.served)
        if place not in places:
            where = _places(shape, set(services), cells, node_sizes)
            places[place] = _by_domain(arrays.model, where, domains)
        for domain, own in places[place]:
            on_node = replicas_on_node(shape, domain.node_gpus)
            cap = batch_cap(arrays.model, shape, [workloads[j] for j in point.served], point.widest_batch)
            found.append(
                Candidate(
                    name=f"{shape.model}|{shape.name}|{'+'.join(sorted(services))}{point.mix_label}|r{point.replicas}{domain}",
                    shape=shape,
                    mean_batch=point.batch,
                    max_num_seqs=cap,
                    min_replicas=point.replicas + max(spares, on_node) if point.replicas > 1 else max(1, on_node),
                    cells=own,
                    kv_pool_bytes=point.kv_pool_bytes,
                    bandwidth_bytes_per_s=float(bandwidth[point.shape]),
                    flops_per_s=float(flops[point.shape]),
                    services=services,
                    domain=domain,
                )
            )
    return found


def _alone(arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], pools: Sequence[PoolRating]) -> list[_Point]:
    size = (len(arrays.shapes), len(workloads))
    load = kv_load(arrays, workloads, *pair_indices(*size))
    room = (load.slots * load.mean_bytes).reshape(size)
    return [
        _Point(
            i,
            pool.replicas,
            (j,),
            float(pool.batch[i, j]),
            float(room[i, j]),
            1.0,
            (float(pool.rate[i, j]),),
            float(pool.limit_batch[i, j]),
        )
        for pool in pools
        for i, j in np.argwhere(pool.rate > 0.0).tolist()
    ]


def _together(
    arrays: ShapeArrays,
    workloads: Sequence[ResolvedWorkload],
    pools: Sequence[PoolRating],
    shared: Sequence[SharedRating],
) -> list[_Point]:
    """Turn the rating of a group at its planned mix into what each of its workloads takes.

    Each takes what it would alone at the batch of the group, which the tightest of them sets; what the mix takes beyond
    the sum of those is shared in proportion.
    """
    widest = {pool.replicas: pool.limit_batch for pool in pools}
    points: list[_Point] = []
    for rating, rates in zip(shared, _rates_at(arrays, workloads, shared), strict=True):
        alone_s = sum(share / rate for share, rate in zip(rating.mix, rates, strict=True))
        factor = SHARING_MARGIN / rating.rate / alone_s
        batch = max(rating.limit_batch, float(widest[rating.replicas][rating.shape, list(rating.group)].max()))
        room = rating.kv_pool_bytes
        points.append(
            _Point(rating.shape, rating.replicas, rating.group, rating.batch, room, factor, rates, batch, rating.mix)
        )
    return points


def _rates_at(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], shared: Sequence[SharedRating]
) -> list[tuple[float, ...]]:
    """Return requests/s of one replica for every member of every group, alone at the mean batch of the group."""
    rows = [(rating.shape, j, rating.batch) for rating in shared for j in rating.group]
    if not rows:
        return []
    shape_of, workload_of = (np.array([row[k] for row in rows], dtype=np.intp) for k in (0, 1))
    batch = np.array([row[2] for row in rows])
    load = kv_load(arrays, workloads, shape_of, workload_of)
    pairs = make_pairs(arrays, workloads, shape_of, workload_of, load.slots, np.full(batch.size, 2.0))
    rates = iter(throughput(pairs, batch).requests_per_s.tolist())
    return [tuple(next(rates) for _ in rating.group) for rating in shared]


def _services(
    arrays: ShapeArrays, workloads: Sequence[ResolvedWorkload], points: Sequence[_Point]
) -> list[dict[str, Service]]:
    """Return, for every operating point, what a request of each workload served there costs."""
    rows = [(n, j, rate) for n, p in enumerate(points) for j, rate in zip(p.served, p.rates, strict=True)]
    shape_of = np.array([points[n].shape for n, _, _ in rows], dtype=np.intp)
    workload_of = np.array([j for _, j, _ in rows], dtype=np.intp)
    batch = np.array([points[n].batch for n, _, _ in rows])
    load = kv_load(arrays, workloads, shape_of, workload_of)
    streamed, flops = _work_per_request(arrays.step.take(shape_of), workloads, workload_of, batch)
    drifts = [w.spec.traffic.peak_to_mean_30s for w in workloads]
    decodes = [max(_decodes(w), LEAST_DECODES) for w in workloads]
    step_s = [_mean_step_s(decodes, p) for p in points]
    found: list[dict[str, Service]] = [{} for _ in points]
    for r, (n, j, rate) in enumerate(rows):
        workload, point = workloads[j], points[n]
        drift = drifts[j]
        found[n][workload.name] = Service(
            busy_s=drift * point.factor / rate,
            residence_s=drift * decodes[j] * step_s[n],
            kv_bytes=float(load.mean_bytes[r]),
            streamed_bytes=drift * float(streamed[r]) * min(1.0, point.factor),
            flops=drift * float(flops[r]),
            mix_share=None if len(point.served) == 1 else point.mix[point.served.index(j)],
        )
    return found


def _mean_step_s(decodes: Sequence[float], point: _Point) -> float:
    """Return the time between two tokens of a request, by Little's law: batch = rate x decode steps x step."""
    mean_decodes = sum(share * decodes[j] for share, j in zip(point.mix, point.served, strict=True))
    busy_s = point.factor * sum(share / rate for share, rate in zip(point.mix, point.rates, strict=True))
    return point.batch * busy_s / mean_decodes


def _decodes(workload: ResolvedWorkload) -> float:
    return float((workload.output_tokens - 1.0).mean())


def _work_per_request(
    step: StepCoefficients, workloads: Sequence[ResolvedWorkload], workload_of: Indices, batch: Array
) -> tuple[Array, Array]:
    """Return bytes that one GPU streams and FLOPs it computes per request, at the mean batch of each pair."""
    context = np.array([_mean_context(w) for w in workloads])[workload_of]
    decodes = np.array([_decodes(w) for w in workloads])[workload_of]
    computed = np.array([float(w.prefill_tokens @ w.prefill_weights) for w in workloads])[workload_of]
    prompt = np.array([w.mean_input_tokens for w in workloads])[workload_of]
    sequences = np.maximum(batch / np.asarray(step.streams), LEAST_SEQUENCES)
    none = np.zeros_like(computed)
    streamed = step_bytes(step, sequences, sequences, context) * decodes / sequences
    decoding = step_flops(step, sequences, sequences, context) * decodes / sequences
    prompting = step_flops(step, computed, none, none, computed, prompt)
    return np.asarray(streamed, dtype=np.float64), np.asarray(decoding + prompting, dtype=np.float64)


def _mean_context(workload: ResolvedWorkload) -> float:
    steps = workload.output_tokens - 1.0
    if steps.sum() <= 0.0:
        return workload.mean_input_tokens
    return workload.mean_input_tokens + float((steps * workload.output_tokens / 2.0).sum() / steps.sum())


def _places(shape: Shape, served: set[str], cells: Cells, node_sizes: Mapping[str, frozenset[int]]) -> tuple[str, ...]:
    """Return the supply cells that admit all workloads served and have nodes that hold the shape."""
    admitting = {
        cell
        for (gpu, admitted), group in cells.items()
        if gpu == shape.gpu and served <= set(admitted)
        for cell in group
    }
    return tuple(sorted(cell for cell in admitting if _holds(shape, node_sizes[cell])))


def _by_domain(
    model: ResolvedModel, cells: tuple[str, ...], domains: Mapping[str, Domain]
) -> list[tuple[Domain, tuple[str, ...]]]:
    """Group cells by what fails together, as far as the model is to survive that."""
    grouped: dict[Domain, list[str]] = {}
    for cell in cells:
        grouped.setdefault(domains[cell].for_failure(model.reliability.survive), []).append(cell)
    return [(domain, tuple(grouped[domain])) for domain in sorted(grouped)]


def _holds(shape: Shape, sizes: frozenset[int]) -> bool:
    """Tell whether some node holds the part of a replica that lies on it; spanned nodes must be filled whole."""
    return shape.node_gpus in sizes if shape.nodes_spanned > 1 else max(sizes) >= shape.node_gpus


def batch_cap(model: ResolvedModel, shape: Shape, served: Sequence[ResolvedWorkload], batch: float) -> int:
    """Return max_num_seqs: the mean batch and what it swings by, so that requests wait for slots only rarely."""
    if model.spec.engine.max_num_seqs is not None:
        return model.spec.engine.max_num_seqs
    if all(float(w.output_tokens.max()) <= 1.0 for w in served):
        return shape.max_num_seqs
    cv2 = max(w.spec.traffic.arrival_cv2 for w in served)
    swing = SLOT_DEVIATIONS * math.sqrt(BATCH_VARIANCE_FACTOR * batch * (1.0 + max(cv2, 1.0)) / 2.0)
    return min(shape.max_num_seqs, math.ceil(batch + swing) + 1)
