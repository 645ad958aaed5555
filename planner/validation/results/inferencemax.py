"""InferenceMAX (InferenceX) results, one object per configuration or a list of them; times are in seconds.

A fixed number of users, lengths drawn from 0.8 to 1 of the nominal ones that the file states, ignoring ends of text.
Rates per GPU are over the GPUs of the layout, and over those that decode where prompts are computed apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import (
    Load,
    ResultRow,
    engine_label,
    known_cells,
    loaded_rows,
    notes,
    scaled,
    shown,
    text,
)
from planner.validation.result_run import Run

NAME = "InferenceMAX"
NEEDS = "hw, conc, tp, isl, osl and times or output_tput_per_gpu of a run without speculative decoding"
RUNS = ""
MILLI = 1e-3
ROUNDING = 1.01
GPUS = {
    "h100": "H100 SXM 80GB", "h200": "H200 SXM 141GB", "b200": "B200 180GB", "b300": "B300", "gb200": "GB200 192GB",
    "gb300": "GB300", "mi300x": "MI300X 192GB", "mi325x": "MI325X 256GB", "mi355x": "MI355X 288GB",
}  # fmt: skip
"""Cards by the names of runners, which may go on after a dash (`b200-trt`)."""
STATISTICS = {"mean": "mean", "median": "p50", "p99": "p99"}


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the runner, the users and a rate per GPU."""
    return {"hw", "conc", "framework"} <= data.keys() and bool({"tput_per_gpu", "output_tput_per_gpu"} & data.keys())


def rows(file: Run, run: Run) -> list[ResultRow]:  # noqa: ARG001
    """Return the rows of one configuration."""
    if _speculates(run.data):
        raise run.refuse("speculative decoding is not modelled")
    layout = _layout(run)
    if layout is None:
        return []
    cells, decoding = layout
    _check_rates(run, decoding, float(cells["n_gpus"]))
    runner = run.text("hw")
    known = known_cells(
        engine=engine_label(run.text("framework"), run.text("image")),
        gpu=GPUS.get(runner.casefold().split("-")[0], runner),
        model=run.text("model"),
        weight_dtype=_weights(run),
        notes=notes("InferenceMAX", "nominal lengths, range ratio 0.8"),
    )
    users, prompt, output = run.whole("conc"), run.number("isl"), run.number("osl")
    metrics = {"output_tok_s_total": scaled(run.metric("output_tput_per_gpu"), decoding)}
    for kind in ("ttft", "tpot"):
        metrics |= {f"{kind}_ms_{s}": scaled(run.metric(f"{w}_{kind}"), 1.0 / MILLI) for w, s in STATISTICS.items()}
    load = None if users is None else Load("closed_loop", concurrency=users)
    return loaded_rows(known | cells, load, (prompt, output), metrics)


def _layout(run: Run) -> tuple[dict[str, str], float] | None:
    """Return the cells of a layout and the number of GPUs that decode, None where the file leaves it open."""
    for key in ("pp", "pcp_size", "dcp_size"):
        if run.statistic(key) not in (None, 1.0):
            raise run.refuse(f"a layout over {key} {shown(run.number(key))} is not read", key)
    if run.raw("disagg") is True:
        return _split(run)
    ranks = run.whole("tp")
    if ranks is None:
        return None
    extra = f"ep={shown(run.count('ep') or 1.0)};dp_attention={_truth(run.raw('dp_attention'))}"
    return {"tp": shown(ranks), "pp": "1", "n_gpus": shown(ranks), "parallel_extra": extra}, ranks


def _check_rates(run: Run, decoding: float, gpus: float) -> None:
    """Refuse outputs, over the GPUs that decode, that are more than all tokens, over all GPUs."""
    output, everything = run.metric("output_tput_per_gpu"), run.metric("tput_per_gpu")
    if not (isinstance(output, float) and isinstance(everything, float)):
        return
    if output * decoding > everything * gpus * ROUNDING:
        raise run.refuse(
            f"impossible: {output * decoding:,.6g} output tokens/s of {everything * gpus:,.6g} tokens/s in all",
            "output_tput_per_gpu",
        )


def _split(run: Run) -> tuple[dict[str, str], float] | None:
    halves, gpus = [], []
    for half in ("prefill", "decode"):
        workers, ranks, experts, count = (
            run.whole(key) for key in (f"{half}_num_workers", f"{half}_tp", f"{half}_ep", f"num_{half}_gpu")
        )
        if workers is None or ranks is None or experts is None or count is None:
            return None
        if count < workers:
            raise run.refuse(f"impossible: {shown(workers)} workers on {shown(count)} GPUs", f"num_{half}_gpu")
        data_parallel = _truth(run.raw(f"{half}_dp_attention"))
        halves.append(
            f"{half} {shown(workers)}x(tp{shown(ranks)} ep{shown(experts)} dpattn={data_parallel}) on {shown(count)} GPUs"
        )
        gpus.append(count)
    return {"tp": "", "pp": "", "n_gpus": shown(sum(gpus)), "parallel_extra": f"disagg {'; '.join(halves)}"}, gpus[1]


def _truth(value: object) -> str:
    return "true" if value is True or text(value).casefold() == "true" else "false"


def _speculates(data: Mapping[str, Any]) -> bool:
    off: tuple[object, ...] = (None, False, 0, "", "none", "off", "false", "0")
    stated = (data.get(key) for key in ("spec_decoding", "mtp"))
    return any((value.casefold() if isinstance(value, str) else value) not in off for value in stated)


def _weights(run: Run) -> str:
    """Return the weight format: 4 bits are MXFP4 on AMD and in builds that say so, NVFP4 elsewhere."""
    stated, named = run.text("precision").casefold(), run.text("model").casefold()
    if stated != "fp4":
        return stated
    mx = run.text("hw").casefold().startswith("mi") or "mxfp4" in named or "gpt-oss" in named
    return "mxfp4" if mx else "nvfp4"
