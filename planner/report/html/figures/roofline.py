"""The roofline of every GPU type in use: what the datasheet allows at an intensity, and where each pool works."""

from __future__ import annotations

import math
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from planner.report import figures
from planner.report.content import Table, numbers, texts
from planner.report.html.svg import MUTED, SERIES, TEXT, Figure, draw, legend, named, short
from planner.study import OperatingPoint, Study

TERA = 1e12
MOST_NAMED = 8
_MARKERS = "osD^vPX*"
_ROOM = 4.0
"""How far the chart goes beyond the last ridge, so that the peaks have room for their names clear of the slope."""
_NOTE = (
    "One GPU at the planned load, averaged over time: what the pool uses of bandwidth and compute in What is scarce, by GPU. The roof is "
    "that of the datasheet. Latency limits, spares and kernels that reach less than the datasheet keep a pool below it."
)


def roofline(study: Study) -> list[Figure]:
    """Return one chart for each GPU type."""
    return [
        _figure(number, gpu, [p for p in study.points if p.gpu == gpu])
        for number, gpu in enumerate(sorted({p.gpu for p in study.points}), 1)
    ]


def _figure(number: int, gpu: str, points: list[OperatingPoint]) -> Figure:
    name, title = f"roofline-{number}", f"Roofline of {figures.visible(gpu)}"
    return Figure(name, title, draw(name, title, partial(_paint, points=points)), _data(points, title))


def _paint(axes: Axes, points: list[OperatingPoint]) -> None:
    gpu = points[0]
    ridges = [peak / gpu.bandwidth_bytes_per_s for peak in gpu.peaks.values()]
    low = 10.0 ** math.floor(math.log10(min(10.0, *(p.flop_per_byte for p in points))))
    high = 10.0 ** math.ceil(math.log10(max(_ROOM * max(ridges), *(p.flop_per_byte for p in points))))
    top = max(gpu.peaks.values())
    axes.plot(
        [low, top / gpu.bandwidth_bytes_per_s, high],
        [gpu.roof(low) / TERA, top / TERA, top / TERA],
        color=TEXT,
        linewidth=1.2,
    )
    for peak in sorted(set(gpu.peaks.values())):
        start = peak / gpu.bandwidth_bytes_per_s
        axes.plot([start, high], [peak / TERA] * 2, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        formats = ", ".join(sorted(name for name, own in gpu.peaks.items() if own == peak))
        label = f"{formats} {figures.number(peak / TERA)}"
        axes.annotate(label, (high, peak / TERA), (0, 2), textcoords="offset points", ha="right", fontsize=8)
    for i, point in enumerate(points):
        color, marker = SERIES[i % len(SERIES)], _MARKERS[i % len(_MARKERS)]
        name = named(short(point.pool)) if i < MOST_NAMED else None
        axes.plot([point.flop_per_byte], [point.flops_per_s / TERA], marker, color=color, markersize=6, label=name)
    bottom = 0.5 * min(gpu.roof(low), *(p.flops_per_s for p in points)) / TERA
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, 2.0 * top / TERA))
    axes.set(xlabel="FLOP per byte of HBM", ylabel="TFLOP/s per GPU")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: figures.number(value)))
        axis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
    legend(axes, 3)


def _data(points: list[OperatingPoint], title: str) -> Table:
    columns = texts("Pool") + numbers("FLOP/byte", "TFLOP/s", "Roof there", "Of the roof", "TB/s", "Of the bandwidth")
    rows = tuple(
        (
            figures.visible(p.pool),
            figures.number(p.flop_per_byte),
            figures.number(p.flops_per_s / TERA),
            figures.number(p.roof(p.flop_per_byte) / TERA),
            figures.share(p.flops_per_s / p.roof(p.flop_per_byte)),
            figures.number(p.bytes_per_s / TERA),
            figures.share(p.bytes_per_s / p.bandwidth_bytes_per_s),
        )
        for p in points
    )
    return Table(title, columns, rows, (_NOTE,))
