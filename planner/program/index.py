"""Look-ups over a fleet problem that several constraints share: needs, bounds, cover weights, supply cells."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from planner.program.data import (
    Column,
    Demand,
    FleetProblem,
    KeptPool,
    ModelRules,
    NodeOffer,
    Service,
    bought_as,
    node_cost,
    spares_by_candidate,
)

CEIL_SLACK = 1e-9  # a ratio this close above an integer is that integer: rates and coefficients carry rounding noise


LEAST_WEIGHT = 1e-3
SMALL_LOAD = 1e-4  # of one replica: what a demand takes less of, solvers may round to no replica
MIX_RTOL = 1e-9  # shares so near those of the demands are theirs
CAPACITY_ROWS = ("hbm_budget", "batch_cap", "bandwidth_ceiling", "compute_ceiling", "step_time")


def ceil_count(value: float) -> int:
    """Round up to a count, forgiving noise of `CEIL_SLACK`; a little is not none, however little."""
    return max(1 if value > 0.0 else 0, math.ceil(value * (1.0 - CEIL_SLACK) - CEIL_SLACK))


def row_needs(column: Column, service: Service) -> tuple[float, float, float, float, float]:
    """Return replicas needed per request/s of a workload by each of `CAPACITY_ROWS`."""
    return (
        service.residence_s * service.kv_bytes / column.kv_pool_bytes,
        service.residence_s / column.batch_slots,
        service.streamed_bytes / column.bandwidth_bytes_per_s,
        service.flops / column.flops_per_s,
        service.busy_s,
    )


@dataclass(frozen=True)
class Loss:
    """What a model loses at once, with a routing of its own: the spares of the pool `lost`, or everything in `zone`."""

    name: str
    model: str
    lost: str = ""
    zone: str = ""

    def takes(self, column: Column) -> bool:
        """Tell whether a candidate is gone as a whole."""
        return self.zone != "" and column.zone == self.zone


@dataclass(frozen=True)
class ProgramIndex:
    """A fleet problem with the derived sets that its constraints are indexed by."""

    problem: FleetProblem

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Candidates by name."""
        return {c.name: c for c in self.problem.columns}

    @cached_property
    def by_model(self) -> dict[str, tuple[Column, ...]]:
        """Candidates of each model, in order."""
        grouped: dict[str, list[Column]] = defaultdict(list)
        for column in self.problem.columns:
            grouped[column.model].append(column)
        return {rule.model: tuple(grouped[rule.model]) for rule in self.problem.rules}

    @cached_property
    def rules(self) -> dict[str, ModelRules]:
        """Rules by model."""
        return {r.model: r for r in self.problem.rules}

    @cached_property
    def demands(self) -> dict[str, Demand]:
        """Demands by workload."""
        return {d.workload: d for d in self.problem.demands}

    @cached_property
    def demands_of(self) -> dict[str, tuple[Demand, ...]]:
        """Demands by model."""
        return {r.model: self.problem.demands_of(r.model) for r in self.problem.rules}

    @cached_property
    def offers(self) -> dict[str, NodeOffer]:
        """Offers by name."""
        return {o.name: o for o in self.problem.offers}

    @cached_property
    def arcs(self) -> list[tuple[str, str]]:
        """Pairs (workload, candidate) for which a rate variable exists."""
        return [(w, c.name) for c in self.problem.columns for w in sorted(c.services)]

    @cached_property
    def shapes(self) -> dict[tuple[str, str], tuple[Column, ...]]:
        """Candidates by (model, shape)."""
        grouped: dict[tuple[str, str], list[Column]] = defaultdict(list)
        for column in self.problem.columns:
            grouped[column.model, column.shape].append(column)
        return {key: tuple(grouped[key]) for key in sorted(grouped)}

    @cached_property
    def needs(self) -> dict[tuple[str, str], float]:
        """Replicas of a candidate needed per request/s of a workload, by the tightest of its rows."""
        return {(w, c.name): max(row_needs(c, s)) for c in self.problem.columns for w, s in c.services.items()}

    @cached_property
    def small_arcs(self) -> list[tuple[str, str]]:
        """Pairs (workload, candidate) where the whole demand takes next to nothing of one replica."""
        planned = {w: d.planned_requests_per_s for w, d in self.demands.items()}
        return [(w, c) for (w, c), need in self.needs.items() if planned[w] * need < SMALL_LOAD]

    @cached_property
    def most_replicas(self) -> dict[str, int]:
        """Replicas of a candidate beyond which no optimal plan goes: it then serves all alone, with its spares."""
        return {c.name: self._most_replicas(c) for c in self.problem.columns}

    def _most_replicas(self, column: Column) -> int:
        rules = self.rules[column.model]
        alone = sum(
            self.demands[w].planned_requests_per_s * max(row_needs(column, s)) for w, s in column.services.items()
        )
        running = self.running_of_shape.get((column.model, column.shape), 0)
        return max(ceil_count(alone) + self.spares[column.name], column.min_replicas, rules.min_replicas, running)

    @cached_property
    def kept_pools(self) -> dict[str, KeptPool]:
        """Pools of the fleet that is to change little, by name."""
        return {p.name: p for p in self.problem.kept.pools} if self.problem.kept is not None else {}

    @cached_property
    def running_of_shape(self) -> dict[tuple[str, str], int]:
        """Replicas that run already, by (model, shape): keeping them is allowed, however few would do."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for pool in self.kept_pools.values():
            column = self.columns[pool.columns[0]]
            found[column.model, column.shape] += pool.replicas
        return found

    @cached_property
    def added(self) -> list[str]:
        """Candidates whose every replica is a change: their model runs already, but not as one of them."""
        kept = self.problem.kept
        if kept is None:
            return []
        known = {name for pool in kept.pools for name in pool.columns}
        return [c.name for c in self.problem.columns if c.model in kept.models and c.name not in known]

    @cached_property
    def most_of_shape(self) -> dict[tuple[str, str], int]:
        """Replicas of a shape beyond which no optimal plan goes, where one pool of it can serve all workloads alone.

        With more of them, that pool alone would do, on fewer GPUs of the same type.
        """
        found: dict[tuple[str, str], int] = {}
        for key, columns in self.shapes.items():
            whole = [
                c for c in columns if self._serves_all(c) and len(c.cells) == len({z for d in columns for z in d.cells})
            ]
            if whole:
                found[key] = min(self.most_replicas[c.name] for c in whole)
        return found

    def _serves_all(self, column: Column) -> bool:
        """Tell whether enough replicas of a candidate serve the demands of its model, at the mix that these have."""
        demand = {d.workload: d.planned_requests_per_s for d in self.demands_of[column.model]}
        if not demand.keys() <= column.services.keys():
            return False
        total = sum(demand.values())
        shares = {w: s.mix_share for w, s in column.services.items() if s.mix_share is not None}
        return all(abs(share * total - demand.get(w, 0.0)) <= MIX_RTOL * total for w, share in shares.items())

    @cached_property
    def switchable_shapes(self) -> list[tuple[str, str]]:
        """Shapes that need a use switch: their model limits the number of shapes, or fixes one format for all."""
        limited = {
            m
            for m, r in self.rules.items()
            if len(self._model_shapes(m)) > r.max_shapes
            or len(self.formats(m)) > 1
            or len(self.kv_formats(m)) > 1
            or self.is_spared(m)
        }
        return [key for key in self.shapes if key[0] in limited]

    def _model_shapes(self, model: str) -> list[str]:
        return [shape for m, shape in self.shapes if m == model]

    def formats(self, model: str) -> tuple[str, ...]:
        """Return the weight formats to choose from, empty when the model may mix them."""
        return self._choices(model, {c.weights for c in self.by_model[model]})

    def kv_formats(self, model: str) -> tuple[str, ...]:
        """Return the KV formats to choose from, empty when the model may mix them."""
        return self._choices(model, {c.kv_cache for c in self.by_model[model]})

    def _choices(self, model: str, names: set[str]) -> tuple[str, ...]:
        return tuple(sorted(names)) if self.rules[model].uniform_format else ()

    @cached_property
    def switched(self) -> list[str]:
        """Candidates with a use switch: those with a least pool size above 1, and those whose loss is one replica."""
        return [c.name for c in self.problem.columns if c.min_replicas > 1 or self.spares[c.name] == 1]

    @cached_property
    def spared(self) -> list[str]:
        """Candidates of models that must survive the loss of replicas."""
        return [c.name for c in self.problem.columns if self.spares[c.name] > 0]

    @cached_property
    def spares(self) -> dict[str, int]:
        """Replicas that every pool may lose at once, by candidate."""
        return spares_by_candidate(self.problem)

    def is_spared(self, model: str) -> bool:
        """Tell whether a model must survive the loss of replicas."""
        return any(self.spares[c.name] > 0 for c in self.by_model[model])

    @cached_property
    def small_pools(self) -> list[str]:
        """Spared candidates without a switch that says what a loss takes: k replicas, or all of fewer."""
        return [c for c in self.spared if not self._loses_all_spares(self.columns[c])]

    def _loses_all_spares(self, column: Column) -> bool:
        """Tell whether a pool in use has at least as many replicas as a loss takes."""
        spares = self.spares[column.name]
        return spares == 1 or column.min_replicas >= spares

    @cached_property
    def losses(self) -> dict[str, Loss]:
        """Losses that are stated with a routing of their own, by name."""
        pools = (Loss(name, self.columns[name].model, lost=name) for name in self.problem.losses)
        zones = (Loss(f"{o.model}@{o.zone}", o.model, zone=o.zone) for o in self.problem.routed_outages)
        return {loss.name: loss for loss in (*pools, *zones)}

    def spot_columns(self, workload: str) -> tuple[Column, ...]:
        """Return the candidates on spot nodes that may serve a workload."""
        return tuple(c for c in self.by_model[self.demands[workload].model] if c.spot and workload in c.services)

    @cached_property
    def spare_shares(self) -> dict[tuple[str, int], dict[str, float]]:
        """Share of the weighted demand, headroom not counted, that one replica carries: by (model, weights), candidate."""
        found: dict[tuple[str, int], dict[str, float]] = {}
        for model in sorted({self.columns[c].model for c in self.spared}):
            demand = {d.workload: d.requests_per_s for d in self.demands_of[model]}
            for k in range(len(self.cover_weights[model])):
                shares = self.reach_shares(model, k, demand)
                if shares:
                    found[model, k] = shares
        return found

    def reach_shares(self, model: str, k: int, demand: Mapping[str, float]) -> dict[str, float]:
        """Return the share of a weighted demand (requests/s by workload) that one replica carries, where it carries some."""
        due = sum(self.cover_weights[model][k].get(w, 0.0) * rate for w, rate in demand.items())
        if due <= 0.0:
            return {}
        shares = {c.name: min(self.reach[c.name, k], due) / due for c in self.by_model[model]}
        return {c: share for c, share in shares.items() if share > 0.0}

    @cached_property
    def placements(self) -> list[tuple[str, str]]:
        """Pairs (candidate, cell) that need a placement variable, for candidates with a choice of cells."""
        return [(c.name, cell) for c in self.problem.columns if c.has_choice for cell in c.cells]

    @cached_property
    def packing(self) -> list[tuple[str, int]]:
        """Pairs (cell, level) of the nested packing rows: every replica size that some candidate of the cell has."""
        return sorted({(cell, c.node_gpus) for c in self.problem.columns for cell in c.cells})

    @cached_property
    def offers_in(self) -> dict[str, tuple[NodeOffer, ...]]:
        """Offers by cell."""
        grouped: dict[str, list[NodeOffer]] = defaultdict(list)
        for offer in self.problem.offers:
            grouped[offer.cell].append(offer)
        return {cell: tuple(grouped[cell]) for cell in sorted(grouped)}

    @cached_property
    def periods(self) -> tuple[str, ...]:
        """Periods that nodes are bought in: a single one without a name, unless hours are planned in several."""
        return tuple(sorted({o.period for o in self.problem.offers}))

    @cached_property
    def reserved(self) -> dict[str, tuple[NodeOffer, ...]]:
        """Copies, one for each period, of the offers whose nodes are bought for all hours; by name of the offer."""
        grouped: dict[str, list[NodeOffer]] = defaultdict(list)
        for offer in self.problem.offers:
            if offer.reserved:
                grouped[offer.reserved].append(offer)
        return {name: tuple(grouped[name]) for name in sorted(grouped)}

    @cached_property
    def purchases(self) -> dict[tuple[str, str], NodeOffer]:
        """A copy of each offer of a long term for each step of a growing demand, by name of the offer and step."""
        found: dict[tuple[str, str], NodeOffer] = {}
        for offer in self.problem.offers:
            if offer.term_steps:
                found.setdefault((bought_as(offer), offer.step), offer)
        return {key: found[key] for key in sorted(found)}

    @cached_property
    def columns_in(self) -> dict[str, tuple[Column, ...]]:
        """Candidates by cell they may be placed in."""
        grouped: dict[str, list[Column]] = defaultdict(list)
        for column in self.problem.columns:
            for cell in column.cells:
                grouped[cell].append(column)
        return {cell: tuple(grouped[cell]) for cell in sorted(grouped)}

    @cached_property
    def finite_cells(self) -> dict[str, int]:
        """GPUs of all available nodes of a cell, for cells whose every offer has stock of its own."""
        stock = {s.entry: s.available for s in self.problem.stock}
        entries = [{o.entry for o in group} for group in self.offers_in.values()]
        alone = {e for e in stock if sum(e in each for each in entries) == 1}
        return {
            cell: sum(
                max(o.gpus_per_node for o in group if o.entry == e) * (stock[e] or 0)
                for e in sorted({o.entry for o in group})
            )
            for cell, group in self.offers_in.items()
            if all(stock.get(o.entry) is not None and o.entry in alone for o in group)
        }

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types on offer."""
        return tuple(sorted({o.gpu for o in self.problem.offers}))

    def price_of(self, column: Column) -> float:
        """Return the least that one replica costs, in the unit of the objective, if its nodes are used to the last GPU.

        Only nodes large enough count. No set of replicas on a node of n GPUs costs more at these prices than the node, since
        the price per GPU of a replica size never exceeds that of the node it lies on: their sum bounds the cost of nodes.
        """
        return column.gpus * sum(self._least_per_gpu(cells, column.node_gpus) for cells in column.places)

    def _least_per_gpu(self, cells: tuple[str, ...], node_gpus: int) -> float:
        offers = [o for cell in cells for o in self.offers_in.get(cell, ())]
        large = [o for o in offers if o.gpus_per_node >= node_gpus]
        return min((node_cost(self.problem, o) / o.gpus_per_node for o in large or offers), default=0.0)

    @cached_property
    def cover_weights(self) -> dict[str, tuple[Mapping[str, float], ...]]:
        """Weights pi of the cover rows of each model: every workload alone, all by their cheapest price, and those found."""
        return {m: self._cover_weights(m) for m in self.by_model}

    def _cover_weights(self, model: str) -> tuple[Mapping[str, float], ...]:
        workloads = [d.workload for d in self.demands_of[model]]
        rows: list[Mapping[str, float]] = [{w: 1.0} for w in workloads]
        if len(workloads) > 1:
            rows.append({w: self._cheapest_need(model, w) for w in workloads})
        return (*rows, *(each.weights for each in self.problem.cover_weights if each.model == model))

    def _cheapest_need(self, model: str, workload: str) -> float:
        able = [c for c in self.by_model[model] if workload in c.services]
        # Free hardware still weighs something, so that no weighted demand is zero.
        return min(
            (max(self.price_of(c), LEAST_WEIGHT * c.gpus) * self.needs[workload, c.name] for c in able), default=0.0
        )

    @cached_property
    def reach(self) -> dict[tuple[str, int], float]:
        """Most weighted demand per second one replica can carry, by (candidate, index of cover weight)."""
        return {
            (c.name, k): most_weighted_rate(c, weights)
            for model, rows in self.cover_weights.items()
            for c in self.by_model[model]
            for k, weights in enumerate(rows)
        }

    def planned_reach(self, column: Column, k: int) -> float:
        """Return the most weighted demand per second that one replica carries as planned, at the mix of its rating."""
        weights = self.cover_weights[column.model][k]
        if any(s.mix_share is None for s in column.services.values()):
            return self.reach[column.name, k]
        needs = [[s.mix_share * need for need in row_needs(column, s)] for s in column.services.values() if s.mix_share]
        scarcest = max((sum(each) for each in zip(*needs, strict=True)), default=0.0)
        worth = sum(weights.get(w, 0.0) * s.mix_share for w, s in column.services.items() if s.mix_share)
        return worth / scarcest if scarcest > 0.0 else self.reach[column.name, k]


def most_weighted_rate(column: Column, weights: Mapping[str, float]) -> float:
    """Bound max {pi.x : capacity rows of one replica} from above by its linear-programming dual at a few prices.

    For any convex combination of the rows, the largest ratio of weight to combined need is an upper bound.
    """
    needs = {w: row_needs(column, s) for w, s in column.services.items() if weights.get(w, 0.0) > 0.0}
    if not needs:
        return 0.0
    hbm_and_time = [(need[0], need[4], max(need)) for need in needs.values()]
    values = [weights[w] for w in needs]
    best = math.inf
    for step in range(11):
        share = step / 10.0
        ratio = max(
            v / max(share * hbm + (1.0 - share) * time, 1e-300)
            for v, (hbm, time, _) in zip(values, hbm_and_time, strict=True)
        )
        best = min(best, ratio)
    if len(values) == 1:
        best = min(best, values[0] / hbm_and_time[0][2])
    return best
