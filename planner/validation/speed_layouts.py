"""Layouts of measured deployments: as a row states them, else the smallest that leaves room for a cache."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.physics.memory import weights_bytes
from planner.physics.types import Layout
from planner.validation.cells import Kind, NotScored, Row, number, quoted
from planner.validation.impossible import check_layout
from planner.validation.start_up import MOST_GPUS

if TYPE_CHECKING:
    from planner.validation.speed_rows import SpeedRow

MOST_COUNT = 4096
COUNT = Kind("count", 1.0, float(MOST_COUNT), whole=True)
_DISAGGREGATED = re.compile(
    r"prefill (?P<pn>\d{1,6})x\(tp(?P<pt>\d{1,6}) ep\d+ dpattn=(?P<pd>true|false)\).*decode (?P<dn>\d{1,6})x\(tp(?P<dt>\d{1,6}) ep\d+ dpattn=(?P<dd>true|false)\) on (?P<dg>\d{1,6})"
)  # fmt: skip


def with_layout(row: SpeedRow, stated: Row, devices: int) -> SpeedRow:
    """Return a row with its layout and the number of its copies. Raises `NotScored` for one that cannot be.

    `devices` are the GPUs of one labelled card.
    """
    gpus = stated_gpus(stated) * devices
    tensor, pipeline = _degree(stated, "tp"), _degree(stated, "pp") or 1
    extra = stated.get("parallel_extra", "").casefold()
    split = _DISAGGREGATED.search(extra)
    if split:
        return _checked(_disaggregated(row, split))
    if "disagg" in extra:
        raise NotScored(f"layout of a disaggregated deployment is not readable: {quoted(extra)}", scorable=True)
    data = re.fullmatch(r"dep(\d{1,6})", extra)
    if data:
        ranks = _count(data[1])
        return _placed(row, Layout(attention_data=ranks, expert=ranks), gpus)
    if "layer split" in extra or (row.engine.name in ("llamacpp", "exllama") and gpus > 1 and tensor is None):
        return _placed(row, Layout(pipeline=max(gpus, 1)), gpus)
    if tensor is None:
        return _guessed(row, gpus, pipeline)
    if "dp_attention=true" in extra or "enable-dp-attention" in extra or _is_dense_free(row, stated, tensor):
        return _placed(row, Layout(attention_data=tensor, expert=tensor, pipeline=pipeline), gpus)
    return _checked(_placed(row, Layout(tensor, pipeline), gpus))


def _checked(row: SpeedRow) -> SpeedRow:
    for layout in (row.layout, row.prefill_layout):
        if layout is not None:
            check_layout(row.arch, layout, row.engine.name)
    return row


def _is_dense_free(row: SpeedRow, stated: Row, tensor: int) -> bool:
    """Tell whether a table prints TP for what its notes call attention-data parallelism."""
    return row.arch.is_moe and tensor > 1 and "attention_dp" in stated.get("notes", "").casefold()


def _placed(row: SpeedRow, layout: Layout, gpus: int) -> SpeedRow:
    if layout.gpus > MOST_GPUS:
        raise NotScored(f"more than {MOST_GPUS} GPUs in one replica", scorable=True)
    if gpus and gpus < layout.gpus:
        raise NotScored(f"the layout needs {layout.gpus} GPUs, n_gpus states {gpus}", scorable=True)
    return replace(row, layout=layout, replicas=float(max(gpus // layout.gpus, 1)))


def _guessed(row: SpeedRow, gpus: int, pipeline: int) -> SpeedRow:
    """A table that names no layout ran the smallest power of two that leaves room for a cache, in copies."""
    tensor = 1
    while tensor * 2 <= max(gpus, 1) and tensor < 8 and not _roomy(row, tensor):
        tensor *= 2
    return _placed(row, Layout(tensor, pipeline), gpus)


def _roomy(row: SpeedRow, tensor: int) -> bool:
    try:
        return weights_bytes(row.arch, Layout(tensor), row.weights) < 0.6 * row.device.usable_bytes
    except ValueError as error:
        raise NotScored(str(error), scorable=True) from None


def _disaggregated(row: SpeedRow, split: re.Match[str]) -> SpeedRow:
    counts = {name: _count(split[name]) for name in ("pn", "pt", "dn", "dt", "dg")}
    decode = _half(counts["dt"], max(counts["dg"] // counts["dn"], 1), split["dd"] == "true")
    prefill = _half(counts["pt"], counts["pt"], split["pd"] == "true")
    placed = _placed(row, decode, decode.gpus * counts["dn"])
    return replace(placed, prefill_layout=prefill, prefill_ranks=float(counts["pn"]))


def _half(tensor: int, gpus: int, data: bool) -> Layout:
    return Layout(attention_data=gpus, expert=gpus) if data else Layout(tensor)


def _count(text: str) -> int:
    """Return a count of GPUs or replicas. Raises `NotScored` for zero and for more than anybody has in one deployment."""
    value = int(text)
    if not 1 <= value <= MOST_COUNT:
        raise NotScored(
            f"parallel_extra: a layout needs 1 to {MOST_COUNT} GPUs or replicas, not {value}", scorable=True
        )
    return value


def stated_gpus(row: Row) -> int:
    """Return the stated number of GPUs, 0 where there is none."""
    return _degree(row, "n_gpus") or 0


def all_gpus(row: SpeedRow) -> float:
    """Return the GPUs of all copies, with those that compute prompts apart."""
    prefill = row.prefill_ranks * row.prefill_layout.gpus if row.prefill_layout else 0.0
    return row.layout.gpus * row.replicas + prefill


def _degree(row: Row, column: str) -> int | None:
    value = number(row, column, COUNT)
    return None if value is None else int(value)
