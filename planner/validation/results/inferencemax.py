"""InferenceMAX (InferenceX) results, one object per configuration or a list of them; times are in seconds.

A fixed number of users, lengths drawn from 0.8 to 1 of the nominal ones that the file states, ignoring ends of text.
Rates per GPU are over the GPUs of the layout, and over those that decode where prompts are computed apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.validation.result_fields import (
    Load,
    engine_label,
    known_cells,
    loaded_rows,
    notes,
    number,
    scaled,
    shown,
    text,
    whole,
)

NAME = "InferenceMAX"
NEEDS = "hw, conc, tp, isl, osl and times or output_tput_per_gpu of a run without speculative decoding"
MILLI = 1e-3
GPUS = {
    "h100": "H100 SXM 80GB", "h200": "H200 SXM 141GB", "b200": "B200 180GB", "b300": "B300", "gb200": "GB200 192GB",
    "gb300": "GB300", "mi300x": "MI300X 192GB", "mi325x": "MI325X 256GB", "mi355x": "MI355X 288GB",
}  # fmt: skip
"""Cards by the names of runners, which may go on after a dash (`b200-trt`)."""
STATISTICS = {"mean": "mean", "median": "p50", "p99": "p99"}


def matches(data: Mapping[str, Any]) -> bool:
    """Tell by the runner, the users and a rate per GPU."""
    return {"hw", "conc", "framework"} <= data.keys() and bool({"tput_per_gpu", "output_tput_per_gpu"} & data.keys())


def rows(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of one configuration."""
    layout = _layout(data)
    if layout is None or _speculates(data):
        return []
    cells, decoding = layout
    known = known_cells(
        engine=engine_label(data.get("framework"), data.get("image")),
        gpu=GPUS.get(text(data.get("hw")).casefold().split("-")[0], text(data.get("hw"))),
        model=text(data.get("model")),
        weight_dtype=_weights(data),
        notes=notes("InferenceMAX", "nominal lengths, range ratio 0.8"),
    )
    users, prompt, output = whole(data.get("conc")), number(data.get("isl")), number(data.get("osl"))
    metrics = {"output_tok_s_total": scaled(number(data.get("output_tput_per_gpu")), decoding)}
    for kind in ("ttft", "tpot"):
        metrics |= {
            f"{kind}_ms_{s}": scaled(number(data.get(f"{w}_{kind}")), 1.0 / MILLI) for w, s in STATISTICS.items()
        }
    load = None if users is None else Load("closed_loop", concurrency=users)
    return loaded_rows(known | cells, load, (prompt, output), metrics)


def _layout(data: Mapping[str, Any]) -> tuple[dict[str, str], float] | None:
    """Return the cells of a layout and the number of GPUs that decode, None where the file leaves it open."""
    if any(number(data.get(key)) not in (None, 1.0) for key in ("pp", "pcp_size", "dcp_size")):
        return None
    if data.get("disagg") is True:
        return _split(data)
    ranks = whole(data.get("tp"))
    if ranks is None:
        return None
    extra = f"ep={shown(whole(data.get('ep')) or 1.0)};dp_attention={_truth(data.get('dp_attention'))}"
    return {"tp": shown(ranks), "pp": "1", "n_gpus": shown(ranks), "parallel_extra": extra}, ranks


def _split(data: Mapping[str, Any]) -> tuple[dict[str, str], float] | None:
    halves, gpus = [], []
    for half in ("prefill", "decode"):
        workers, ranks, experts, count = (
            whole(data.get(key)) for key in (f"{half}_num_workers", f"{half}_tp", f"{half}_ep", f"num_{half}_gpu")
        )
        if workers is None or ranks is None or experts is None or count is None or count < workers:
            return None
        data_parallel = _truth(data.get(f"{half}_dp_attention"))
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


def _weights(data: Mapping[str, Any]) -> str:
    """Return the weight format: 4 bits are MXFP4 on AMD and in builds that say so, NVFP4 elsewhere."""
    stated, named = text(data.get("precision")).casefold(), text(data.get("model")).casefold()
    if stated != "fp4":
        return stated
    mx = text(data.get("hw")).casefold().startswith("mi") or "mxfp4" in named or "gpt-oss" in named
    return "mxfp4" if mx else "nvfp4"
