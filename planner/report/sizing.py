"""Rows of `planner size` as text: what is the same in all of them, a table of what differs, and the levers."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.figures import listed, number
from planner.report.rows import Row, Shown, listing, table
from planner.sizing.advice import percent_up

TABLE_DIGITS = 4
MOST_LEVERS = 5
MOST_RANGES = 6
GIVEN_DIGITS = 6
"""Significant digits of a share that was given, in percent."""

INPUTS = (
    "model", "parameters", "kv_heads", "gpu", "context_tokens", "batch", "weights", "kv", "tensor_parallel", "units",
    "bandwidth_tb_s", "host_gb_s", "memory_{u}", "workspace_{u}", "engine", "gpus", "zero", "attention", "checkpoint",
    "offload", "tier", "activation_factor", "cpu_weights_share", "cpu_kv_share",
)  # fmt: skip
"""Keys that stand above a table when they are the same in all rows; `{u}` is the unit of sizes."""

SHOWN = {
    "kv": (
        "bytes_per_token", "sequence_gb", "kv_gb", "kv_gib", "kv_gb_per_gpu", "kv_over_weights_share",
        "saving_over_multi_head", "contiguous_waste_share", "paged_waste_share",
    ),
    "decode": (
        "weights_{u}", "kv_{u}", "kv_ms", "step_ms", "weights_ceiling_tok_s", "ceiling_tok_s", "expected_low_tok_s",
        "expected_high_tok_s", "bandwidth_over_first", "compute_over_first",
    ),
    "intensity": (
        "ridge_flop_per_byte", "decode_flop_per_byte", "regime", "balanced_batch", "attention_flop_per_byte",
        "prefill_flop_per_byte", "prefill_regime", "bandwidth_over_first", "compute_over_first",
    ),
    "hbm": (
        "weights_{u}", "weights_share", "kv_{u}", "kv_room_{u}", "free_{u}", "fits", "engine_weights_{u}",
        "engine_kv_pool_{u}", "engine_sequences", "engine_fits",
    ),
    "concurrency": (
        "kv_room_{u}", "sequence_{u}", "sequences", "engine_sequences", "kv_traffic_{u}", "kv_alone_ms", "kv_alone_tok_s",
        "step_ms", "tok_s", "expected_low_tok_s", "expected_high_tok_s",
    ),
    "training": (
        "parameters_{u}", "gradients_{u}", "optimizer_{u}", "activations_{u}", "total_{u}", "free_{u}", "fits",
        "recompute_share", "transfer_ms", "hidden_share", "remedy",
    ),
    "offload": (
        "resident_{u}", "offloaded_{u}", "fits", "hbm_ms", "host_ms", "step_ms", "ceiling_tok_s", "all_in_hbm_tok_s",
        "weights_to_move_share", "ceiling_when_moved_tok_s",
    ),
}  # fmt: skip
"""Results in the table of each calculator; JSON and CSV have all."""


def _given(share: float) -> str:
    return f"{number(100.0 * share, GIVEN_DIGITS)} %"


WRITTEN: Shown = {
    "cpu_weights_share": _given,
    "cpu_kv_share": _given,
    "workspace_share": _given,
    "weights_to_move_share": percent_up,
}
"""Shares that are typed in, or are to be: whole percents would lose what was given or is needed."""


def render(calculator: str, data: Sequence[Row], unit: str) -> list[str]:
    """Lay out one row key by key, several as columns: inputs that differ, then results; the rest stands above."""
    suffix = unit.lower()
    if len(data) == 1:
        body = listing(
            {k: v for k, v in data[0].items() if v is not None and k not in ("scarce", "lever")}, TABLE_DIGITS, WRITTEN
        )
        return [*body, "", *_levers(data)]
    inputs = [key.format(u=suffix) for key in INPUTS]
    shown = [key.format(u=suffix) for key in SHOWN[calculator]]
    differing = [k for k in data[0] if k in inputs and any(row[k] != data[0][k] for row in data)]
    same = {k: data[0][k] for k in data[0] if k in inputs and k not in differing and data[0][k] is not None}
    columns = [*differing, *(k for k in shown if any(row[k] is not None for row in data))]
    return [
        *_above(same),
        *table([{k: row[k] for k in columns} for row in data], TABLE_DIGITS, WRITTEN),
        "",
        *_levers(data),
    ]


def _above(same: Row) -> list[str]:
    return [*listing(same, TABLE_DIGITS, WRITTEN), ""] if same else []


def _levers(data: Sequence[Row]) -> list[str]:
    """Name the scarce resource and the lever: once for all rows, or with the numbers of the rows they are for."""
    rows_of: dict[str, list[int]] = {}
    for place, row in enumerate(data, 1):
        rows_of.setdefault(f"scarce: {row['scarce']}; lever: {row['lever']}", []).append(place)
    if len(rows_of) == 1:
        return list(rows_of)
    lines = [f"{_ranges(numbers)}: {text}" for text, numbers in rows_of.items()]
    rest = len(lines) - MOST_LEVERS
    return lines[:MOST_LEVERS] + ([f"and {rest} more, in --format json"] if rest > 0 else [])


def _ranges(numbers: Sequence[int]) -> str:
    """Return `row 2` or `rows 1-4, 7`."""
    runs: list[list[int]] = []
    for place in numbers:
        if runs and runs[-1][-1] == place - 1:
            runs[-1][1:] = [place]
        else:
            runs.append([place])
    text = listed(("-".join(map(str, run)) for run in runs), MOST_RANGES)
    return f"{'row' if len(numbers) == 1 else 'rows'} {text}"
