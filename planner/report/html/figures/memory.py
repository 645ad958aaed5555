"""What fills the memory of one GPU of every pool: a bar each, in the order of the legend."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes

from planner.plan.schema import Plan, Pool
from planner.report import figures
from planner.report.html.svg import GROUND, MUTED, SERIES, Figure, draw, legend, short
from planner.report.sections.pools import memory_table

PARTS = (
    ("weights", "Weights", SERIES[0]),
    ("kv_pool", "KV cache", SERIES[1]),
    ("activations", "Activations", SERIES[2]),
    ("runtime", "Runtime", SERIES[3]),
    ("graphs", "CUDA graphs", SERIES[4]),
    ("free", "Free", MUTED),
)
MOST_BARS = 40
_TITLE = "HBM of one GPU of each pool, GiB"


def memory(plan: Plan) -> list[Figure]:
    """Return the chart of the memory budgets of the costliest pools; its table has them all."""
    if not plan.pools:
        return []
    drawn = sorted(plan.pools, key=lambda p: (-p.usd_per_hour, p.name))[:MOST_BARS]
    size = (9.0, 1.1 + 0.32 * len(drawn))
    svg = draw("hbm", _TITLE, partial(_paint, pools=sorted(drawn, key=lambda p: p.name)), size)
    return [Figure("hbm", _TITLE, svg, memory_table(plan, drawn=False), is_wide=True)]


def _paint(axes: Axes, pools: list[Pool]) -> None:
    left = [0.0] * len(pools)
    for part, label, color in PARTS:
        sizes = [max(0.0, getattr(p.hbm_bytes_per_gpu, part)) / figures.GIB for p in pools]
        alpha = 0.35 if part == "free" else None
        axes.barh(
            range(len(pools)), sizes, left=left, color=color, edgecolor=GROUND, height=0.66, label=label, alpha=alpha
        )
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    axes.set_yticks(range(len(pools)), [short(f"{p.name}, {p.gpu}", 40) for p in pools])
    axes.invert_yaxis()
    axes.set_xlabel("GiB")
    legend(axes, len(PARTS), middle=0.4)
