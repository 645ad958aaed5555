"""Random tiny fleet problems, with every rule on in some of them."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from planner.program.data import (
    Column,
    CostShare,
    Demand,
    FleetProblem,
    ModelRules,
    NodeOffer,
    Outage,
    Quota,
    Service,
    Stock,
)

TIMES = int(os.environ.get("PLANNER_RANDOM_FLEETS", "1"))
"""How many times as many fleets are tried as the suite has time for."""
FORMATS = ("bf16", "fp8")
NODE_SIZES = (1, 2, 4, 6, 8)
WIDE_NODE_GPUS = 4
LOST_NODE_GPUS = 4


def seeds(first: int, count: int) -> range:
    """Return the seeds of `count` fleets from `first` on, more where more are asked for."""
    return range(first, first + count * TIMES)


def random_fleet(seed: int) -> FleetProblem:
    """Return a problem of one or two models with one or two workloads, 2 to 4 candidates and 2 or 3 offers."""
    rng = np.random.default_rng(seed)
    models = ("m", "n") if rng.random() < 0.4 else ("m",)
    spanning = rng.random() < 0.2
    offers, stock = _offers(rng, spanning)
    cells: dict[str, list[str]] = {}
    for offer in offers:
        cells.setdefault(offer.gpu, []).append(offer.cell)
    demands: list[Demand] = []
    columns: list[Column] = []
    rules: list[ModelRules] = []
    for model in models:
        own = _demands(rng, model)
        rule = ModelRules(
            model,
            max_shapes=int(rng.choice([1, 2, 9])),
            uniform_format=bool(rng.random() < 0.5),
            spare_replicas=int(rng.choice([0, 0, 1, 2])),
            min_replicas=int(rng.choice([1, 1, 2, 3])),
        )
        count = int(rng.integers(1, 3)) if len(models) == 2 else int(rng.integers(2, 5))
        columns += [_column(rng, model, k, own, rule, cells, spanning and k == 0) for k in range(count)]
        demands += own
        rules.append(rule)
    gpus = sorted(cells)
    return FleetProblem(
        columns=tuple(sorted(columns, key=lambda c: c.name)),
        demands=tuple(demands),
        rules=tuple(rules),
        offers=offers,
        stock=stock,
        gpu_limits={str(rng.choice(gpus)): int(rng.integers(2, 12))} if rng.random() < 0.3 else {},
        max_gpu_types=1 if rng.random() < 0.25 else None,
        objective=str(rng.choice(["cost", "cost", "cost", "gpus", "power"])),
    )


def with_limits(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem with a power limit, a quota, or a share of the cost, as the seed has it."""
    rng = np.random.default_rng([seed, 1])
    names = [o.name for o in problem.offers]
    some = frozenset(n for n in names if rng.random() < 0.5) or frozenset(names[:1])
    match int(rng.integers(3)):
        case 0:
            return replace(problem, max_power_w=float(rng.integers(2, 16)) * 700.0)
        case 1:
            amounts = {n: float(rng.integers(1, 5)) for n in sorted(some)}
            return replace(problem, quotas=(Quota("rules.0", "vCPUs", amounts, float(rng.integers(0, 12))),))
        case _:
            share = float(rng.choice([0.0, 0.3, 0.6]))
            return replace(problem, cost_shares=(CostShare("rules.0", some, share),))


def with_preferences(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem with penalties on the replicas of one GPU type."""
    rng = np.random.default_rng([seed, 2])
    gpu, penalty = str(rng.choice(["A", "B"])), float(rng.uniform(0.05, 3.0))
    columns = tuple(replace(c, penalty=penalty * c.gpus) if c.gpu == gpu else c for c in problem.columns)
    return replace(problem, columns=columns)


def with_mixes(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem with candidates that are rated for one mix of two workloads: that of the demands, or another."""
    rng = np.random.default_rng([seed, 5])
    rates = {d.workload: d.planned_requests_per_s for d in problem.demands}

    def column(c: Column) -> Column:
        if len(c.services) < 2 or rng.random() < 0.3:
            return c
        weights = {w: rates[w] * float(rng.choice([1.0, 1.0, 0.25])) for w in c.services}
        shares = {w: weight / sum(weights.values()) for w, weight in weights.items()}
        return replace(c, services={w: replace(s, mix_share=shares[w]) for w, s in c.services.items()})

    return replace(problem, columns=tuple(column(c) for c in problem.columns))


def with_failures(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem with candidates on spot nodes and in zones, limits on spot, and the loss of zones."""
    rng = np.random.default_rng([seed, 3])
    columns = tuple(
        replace(c, spot=bool(rng.random() < 0.4), zone=str(rng.choice(["east", "west"]))) for c in problem.columns
    )
    demands = tuple(
        replace(d, spot_share=float(rng.choice([0.0, 0.3, 0.6, 1.0])), on_demand_floor=bool(rng.random() < 0.5))
        for d in problem.demands
    )
    lost = [r.model for r in problem.rules if rng.random() < 0.5]
    outages = tuple(Outage(m, zone) for m in lost for zone in sorted({c.zone for c in columns if c.model == m}))
    return replace(problem, columns=columns, demands=demands, outages=outages)


def with_node_losses(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem with models that are to survive the loss of a node of 4 GPUs."""
    rng = np.random.default_rng([seed, 4])
    spared = {r.model for r in problem.rules if rng.random() < 0.8}

    def column(c: Column) -> Column:
        on_node = 1 if c.nodes_spanned > 1 else LOST_NODE_GPUS // c.node_gpus
        if c.model not in spared:
            return c
        return replace(c, node_replicas=on_node, min_replicas=max(c.min_replicas, on_node))

    return replace(problem, columns=tuple(column(c) for c in problem.columns))


def with_periods(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem in two periods: less demand in the second, where a model is there once more or runs on as it is."""
    rng = np.random.default_rng([seed, 5])
    day = float(rng.choice([0.2, 0.5, 0.8]))
    shares = {"day": day, "night": 1.0 - day}
    less = float(rng.uniform(0.1, 0.9))
    steady = {r.model for r in problem.rules if len(problem.rules) > 1 and rng.random() < 0.5}
    reserved = {o.name for o in problem.offers if rng.random() < 0.5}
    cheaper = float(rng.uniform(0.4, 0.9))
    offers = [
        replace(
            o,
            name=f"{o.name}@{period}",
            entry=f"{o.entry}@{period}",
            cell=f"{o.cell}@{period}",
            usd_per_node_h=o.usd_per_node_h * share * (cheaper if o.name in reserved else 1.0),
            period=period,
            share=share,
            reserved=o.name if o.name in reserved else "",
        )
        for o in problem.offers
        for period, share in shares.items()
    ]
    return replace(
        problem,
        columns=tuple(
            sorted((c for own in problem.columns for c in _copies(own, own.model in steady)), key=lambda c: c.name)
        ),
        demands=tuple(
            d if d.model in steady else _copy(d, period, 1.0 if period == "day" else less)
            for d in problem.demands
            for period in (("day",) if d.model in steady else shares)
        ),
        rules=tuple(
            r if r.model in steady else replace(r, model=f"{r.model}@{period}")
            for r in problem.rules
            for period in (("day",) if r.model in steady else shares)
        ),
        offers=tuple(sorted(offers, key=lambda o: o.name)),
        stock=tuple(replace(s, entry=f"{s.entry}@{period}") for s in problem.stock for period in shares),
    )


def with_steps(problem: FleetProblem, seed: int) -> FleetProblem:
    """Return the problem in two steps of a demand that changes, with nodes that are bought for one step or both."""
    rng = np.random.default_rng([seed, 6])
    periods = with_periods(problem, seed)
    terms = {o.reserved: int(rng.integers(1, 3)) for o in periods.offers if o.reserved}
    offers = [
        replace(
            o,
            step=o.period,
            reserved=f"{o.reserved}@{o.period}" if o.reserved else "",
            term_steps=terms.get(o.reserved, 0),
        )
        for o in periods.offers
    ]
    swapped = {"day": "night", "night": "day"} if rng.random() < 0.7 else {}
    demands = []
    for d in periods.demands:
        base, _, period = d.workload.rpartition("@")
        other = next((o for o in periods.demands if o.workload == f"{base}@{swapped.get(period, period)}"), d)
        demands.append(replace(d, requests_per_s=other.requests_per_s))
    return replace(periods, offers=tuple(offers), demands=tuple(demands))


def _copy(demand: Demand, period: str, share: float) -> Demand:
    return replace(
        demand,
        workload=f"{demand.workload}@{period}",
        model=f"{demand.model}@{period}",
        requests_per_s=demand.requests_per_s * share,
    )


def _copies(column: Column, is_steady: bool) -> list[Column]:
    places = {period: tuple(f"{cell}@{period}" for cell in column.cells) for period in ("day", "night")}
    if is_steady:
        by_period = tuple(places.values())
        return [replace(column, cells=tuple(c for own in by_period for c in own), cells_by_period=by_period)]
    return [
        replace(
            column,
            name=f"{column.name}@{period}",
            model=f"{column.model}@{period}",
            cells=cells,
            services={f"{w}@{period}": s for w, s in column.services.items()},
        )
        for period, cells in places.items()
    ]


def with_budget(problem: FleetProblem, usd_per_h: float) -> FleetProblem:
    """Return the problem with a budget."""
    return replace(problem, budget_usd_per_h=usd_per_h)


def _demands(rng: np.random.Generator, model: str) -> list[Demand]:
    headroom = float(rng.choice([0.0, 0.1, 0.3]))
    names = [f"{model}-ask", f"{model}-batch"][: int(rng.integers(1, 3))]
    return [Demand(name, model, float(rng.uniform(1.0, 10.0)), headroom) for name in names]


def _offers(rng: np.random.Generator, spanning: bool) -> tuple[tuple[NodeOffer, ...], tuple[Stock, ...]]:
    offers: list[NodeOffer] = []
    stock: list[Stock] = []
    for k in range(int(rng.integers(2, 4))):
        gpu = ("A", "B", str(rng.choice(["A", "B"])))[k]
        cell = f"{gpu}#{rng.integers(1, 3)}" if k == 2 else f"{gpu}#1"
        entry = f"e{rng.integers(0, k + 1)}"
        size = WIDE_NODE_GPUS if spanning else int(rng.choice(NODE_SIZES))
        price = size * float(rng.uniform(0.5, 4.0)) * (0.0 if rng.random() < 0.1 else 1.0)
        offers.append(
            NodeOffer(f"o{k}", entry, gpu, cell, size, round(price, 2), size * float(rng.choice([300.0, 700.0])))
        )
    for entry in sorted({o.entry for o in offers}):
        free = any(o.usd_per_node_h == 0.0 for o in offers if o.entry == entry)
        if free or rng.random() < 0.35:
            available = int(rng.integers(1, 5))
            committed = available if free else int(rng.integers(0, available + 1))
            stock.append(Stock(entry, committed, available if free or rng.random() < 0.8 else None))
    return tuple(offers), tuple(stock)


def _column(
    rng: np.random.Generator,
    model: str,
    k: int,
    demands: list[Demand],
    rule: ModelRules,
    cells: dict[str, list[str]],
    spanning: bool,
) -> Column:
    gpu = str(rng.choice(sorted(cells)))
    where = sorted(set(cells[gpu]))
    if len(where) > 1 and rng.random() < 0.4:
        where = [str(rng.choice(where))]
    served = [d for d in demands if k == 0 or rng.random() < 0.7] or demands
    weights, kv_cache = str(rng.choice(FORMATS)), str(rng.choice(FORMATS))
    size = WIDE_NODE_GPUS if spanning else int(rng.choice([1, 2, 4]))
    pool = int(rng.choice([1, 1, 1, 2, 4]))
    shape = f"{gpu}-tp{size}{'pp2' if spanning else ''}-{weights}-kv{kv_cache}"
    return Column(
        name=f"{model}|{k}|{shape}",
        model=model,
        shape=shape,
        gpu=gpu,
        weights=weights,
        kv_cache=kv_cache,
        node_gpus=size,
        nodes_spanned=2 if spanning else 1,
        min_replicas=pool + rule.spare_replicas if pool > 1 else 1,
        cells=tuple(where),
        kv_pool_bytes=1.0e9,
        batch_slots=float(rng.integers(8, 64)),
        bandwidth_bytes_per_s=1.0e12,
        flops_per_s=1.0e14,
        services={d.workload: _service(rng, d, size) for d in served},
    )


def _service(rng: np.random.Generator, demand: Demand, size: int) -> Service:
    """Draw what a request costs so that the whole demand needs a few replicas, by whichever row is the tightest."""
    replicas = rng.uniform(0.2, 3.0) / size**0.5
    busy, held, streamed, computed = replicas * rng.uniform(0.5, 1.0, 4) / demand.requests_per_s
    residence = float(rng.uniform(1.0, 10.0))
    return Service(
        busy_s=float(busy),
        residence_s=residence,
        kv_bytes=float(held / residence * 1.0e9),
        streamed_bytes=float(streamed * 1.0e12),
        flops=float(computed * 1.0e14),
    )
