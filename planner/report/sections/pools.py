"""The pools: what runs where, what it does at the planned load, what its memory holds, what limits it."""

from __future__ import annotations

from itertools import accumulate

from planner.plan.schema import HbmBytes, Plan, Pool
from planner.report import figures
from planner.report.content import Block, Lines, Table, numbers, texts

BAR_WIDTH = 32
_PARTS = (("weights", "W"), ("kv_pool", "K"), ("activations", "A"), ("runtime", "R"), ("graphs", "G"), ("free", "."))
_LEGEND = "W weights, K KV cache, A activations, R runtime, G CUDA graphs, . free"
_LOAD = "Load: share used of the scarcest of queueing room, KV cache and batch, at peak with headroom."
_LOAD_IN_PERIOD = (
    "Load: share used of the scarcest of queueing room, KV cache and batch, in the period named, headroom included."
)
_PERIOD = (
    "Period: the one with most replicas of the pool, the first of several; all but $/h, the mean over all hours, is of it. Pools "
    "need not run at the same hours, so that neither replicas nor GPUs add up: By period has those of each."
)
_SPARE = "Spare: how many of the replicas may fail while the model still carries its demand, headroom not counted."
_BAND = texts("Speed class") + numbers("Times x", "TTFT x")
_CLASSES = (
    "Times x, TTFT x: what predictions are multiplied by for the confidence of the spec. Speed class: A this GPU and "
    "model family were measured (published, own: with this engine and weight format), B GPUs of its architecture, C "
    "something related, D nothing near."
)
_WORTH = (
    "Five benchmark runs of a combination, read by planner calibrate, narrow its band. Worth: the share of the pools' cost "
    "that frees if the prediction itself stays; it may as well move. Whole nodes are not counted."
)
_PARALLELISM = (
    ("TP", "tensor_parallel"),
    ("PP", "pipeline_parallel"),
    ("EP", "expert_parallel"),
    ("DP", "attention_data_parallel"),
)


def pools(plan: Plan) -> Block | None:
    """Return the fleet, one pool a row."""
    if not plan.pools:
        return None
    columns = texts("Pool", *period_title(plan), "Model", "GPU", "Layout", "Weights", "KV") + numbers(
        "Batch cap", "Replicas", "Spare", "GPUs", "$/h"
    )
    rows = tuple(_pool(p, plan) for p in plan.pools)
    notes = (_LOAD, _SPARE) if plan.demand_by_period is None else (_PERIOD, _LOAD_IN_PERIOD, _SPARE)
    return Table("Pools", columns + numbers("Load") + texts("Limited by", "Placed"), rows, notes)


def period_title(plan: Plan) -> tuple[str, ...]:
    """Return the title of the column that says of which period figures of pools are; nothing where there is only one."""
    return () if plan.demand_by_period is None else ("Period",)


def period_of(pool: Pool, plan: Plan) -> tuple[str, ...]:
    """Return the period that figures of a pool are of, as one cell; nothing where there is only one."""
    return () if plan.demand_by_period is None else (figures.visible(pool.period),)


def _pool(pool: Pool, plan: Plan) -> tuple[str, ...]:
    term = " spot" if pool.spot else ""
    places = (f"{figures.visible(f'{p.provider} {p.region}')}{term} x{p.replicas}" for p in pool.placement)
    return (
        figures.visible(pool.name),
        *period_of(pool, plan),
        figures.visible(pool.model),
        figures.visible(pool.gpu),
        layout(pool),
        figures.visible(pool.weights),
        figures.visible(pool.kv_cache),
        f"{pool.max_num_seqs:,}",
        f"{pool.replicas:,}",
        f"{pool.spare_replicas:,}",
        f"{pool.gpus:,}",
        figures.amount(pool.usd_per_hour),
        figures.share(pool.utilization),
        pool.limited_by,
        figures.listed(places, 3),
    )


def layout(pool: Pool) -> str:
    """Return the parallelism of a pool, such as `TP8 PP2`; degrees of one are left out, but for tensor parallelism."""
    degrees = [(short, getattr(pool, name)) for short, name in _PARALLELISM]
    return " ".join(f"{short}{degree}" for short, degree in degrees if degree > 1 or short == "TP")


def predictions(plan: Plan) -> Block | None:
    """Return what each pool does at its traffic, and how sure that is."""
    if not plan.pools:
        return None
    title = "Predicted at peak" if plan.demand_by_period is None else "Predicted in the period of each pool"
    columns = texts("Pool", *period_title(plan), "Traffic in req/s")
    columns += numbers("TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "tok/s out", "In batch")
    return Table(title, columns + _BAND, tuple(_prediction(p, plan) for p in plan.pools), (_CLASSES,))


def _prediction(pool: Pool, plan: Plan) -> tuple[str, ...]:
    times = pool.predicted
    traffic = {"all": times.requests_per_s} if pool.traffic is None else pool.traffic
    rates = (f"{figures.visible(name)} {figures.number(rate)}" for name, rate in traffic.items())
    return (
        figures.visible(pool.name),
        *period_of(pool, plan),
        figures.listed(rates, 4),
        *(figures.seconds(s) for s in (times.ttft_p50_s, times.ttft_p95_s, times.tpot_p50_s, times.tpot_p95_s)),
        figures.number(times.output_tokens_per_s),
        figures.number(pool.mean_batch),
        pool.band.provenance if pool.band.measured == "none" else f"{pool.band.provenance}, {pool.band.measured}",
        f"{pool.band.factor:.2f}",
        f"{pool.band.ttft_factor:.2f}",
    )


def measurements(plan: Plan) -> Block | None:
    """Return the combinations whose own measurement would narrow the bands, the most valuable first."""
    together: dict[tuple[str, str, str], list[Pool]] = {}
    for pool in plan.pools:
        if pool.band.measuring_saves_usd_per_hour > 0.0:
            together.setdefault((pool.model, pool.gpu, pool.weights), []).append(pool)
    if not together:
        return None
    worth = {key: sum(p.band.measuring_saves_usd_per_hour for p in own) for key, own in together.items()}
    columns = texts("Model", "GPU", "Weights", "Pools") + numbers("Times x", "Then x", "Worth $/month")
    hours = sum(period.hours_per_month for period in plan.periods)
    rows = tuple(
        (
            *(figures.visible(part) for part in key),
            figures.listed((figures.visible(p.name) for p in together[key]), 4),
            f"{together[key][0].band.factor:.2f}",
            f"{together[key][0].band.factor_if_measured:.2f}",
            figures.amount(worth[key] * hours),
        )
        for key in sorted(worth, key=lambda key: (-worth[key], key))
    )
    return Table("What to measure first", columns, rows, (_WORTH,))


def memory(plan: Plan) -> Block | None:
    """Return what fills the memory of one GPU of each pool, with bars of letters."""
    return memory_table(plan, drawn=True) if plan.pools else None


def memory_table(plan: Plan, drawn: bool) -> Table:
    """Return what fills the memory of one GPU of each pool, with bars of letters if it is `drawn` so."""
    columns = texts("Pool") + numbers("Usable") + (texts("Use") if drawn else ())
    columns += numbers("Weights", "KV", "Act.", "Runtime", "Graphs", "Free", "KV tokens", "Longest seqs")
    longest = "Longest seqs: sequences of max_model_len tokens that one replica holds at once."
    notes = (_LEGEND, longest) if drawn else (longest,)
    return Table("HBM per GPU in GiB", columns, tuple(_memory(p, drawn) for p in plan.pools), notes)


def _memory(pool: Pool, drawn: bool) -> tuple[str, ...]:
    hbm = pool.hbm_bytes_per_gpu
    return (
        figures.visible(pool.name),
        figures.gib(hbm.usable),
        *((bar(hbm),) if drawn else ()),
        *(figures.gib(getattr(hbm, part)) for part, _ in _PARTS),
        figures.number(pool.kv_tokens),
        figures.number(pool.max_concurrency),
    )


def bar(hbm: HbmBytes, width: int = BAR_WIDTH) -> str:
    """Draw a memory budget as letters, each standing for the same number of bytes."""
    sizes = [max(0.0, getattr(hbm, part)) for part, _ in _PARTS]
    total = sum(sizes)
    if total <= 0.0:
        return ""
    ends = [round(width * end / total) for end in accumulate(sizes)]
    starts = [0, *ends]
    return "".join(letter * (end - start) for (_, letter), start, end in zip(_PARTS, starts, ends, strict=False))


def limits(plan: Plan) -> Block | None:
    """Return what each pool is short of and what would buy it back; pools with the same answer share a line."""
    together: dict[tuple[str, str], list[str]] = {}
    for pool in plan.pools:
        name = " in ".join((figures.visible(pool.name), *period_of(pool, plan)))
        together.setdefault((pool.limited_by, figures.visible(pool.lever)), []).append(name)
    if not together:
        return None
    lines = (f"{', '.join(names)}: short of {resource}; {lever}." for (resource, lever), names in together.items())
    return Lines("What limits the pools", tuple(lines))
