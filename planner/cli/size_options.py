"""Flags of `planner size`. Those that take a comma list make a grid."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from planner.cli.options import flag
from planner.sizing.inputs import Unit


class Format(StrEnum):
    """How the answer is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def listed_flag(name: str, help: str, metavar: str) -> Any:
    """Return an option without a default of its own."""
    return flag(name, help, metavar=metavar, show_default=False)


ModelOption = Annotated[str | None, listed_flag("--model", "Models of the catalog.", "NAME,...")]
ParamsOption = Annotated[str | None, listed_flag("--params", "Parameter counts: 70B, 70e9.", "N,...")]
LayersOption = Annotated[str | None, listed_flag("--layers", "Layers.", "N,...")]
HeadsOption = Annotated[str | None, listed_flag("--heads", "Query heads.", "N,...")]
KvHeadsOption = Annotated[str | None, listed_flag("--kv-heads", "KV heads; default: --heads.", "N,...")]
HeadDimOption = Annotated[str | None, listed_flag("--head-dim", "Width of one head.", "N,...")]
HiddenOption = Annotated[
    str | None, listed_flag("--hidden", "Width of the model; default: heads x head width.", "N,...")
]
GpuOption = Annotated[str | None, listed_flag("--gpu", "GPUs of the catalog.", "NAME,...")]
MemoryOption = Annotated[str | None, listed_flag("--memory", "Memory of one GPU: 8GB, 24 GiB.", "SIZE,...")]
BandwidthOption = Annotated[str | None, listed_flag("--bandwidth", "Bandwidth of that memory: 3.35TB/s.", "RATE,...")]
TflopsOption = Annotated[str | None, listed_flag("--tflops", "Dense compute peak in TFLOPS.", "N,...")]
HostOption = Annotated[
    str | None,
    listed_flag("--host-bandwidth", "Link to host memory, one way; default: the GPU's, else 64GB/s.", "RATE,..."),
]
ContextOption = Annotated[
    str | None, listed_flag("--context", "Tokens per sequence: 8192, 8k (8,000); default: 4096.", "N,...")
]
PlainContextOption = Annotated[
    str | None, listed_flag("--context", "Tokens per sequence; without it the cache is left out.", "N,...")
]
BatchOption = Annotated[str, flag("--batch", "Sequences in a step.", metavar="N,...")]
WeightsOption = Annotated[
    str, flag("--weights", "Weight formats: bf16, int8, int4, ...; native: the model's own.", metavar="FORMAT,...")
]
KvOption = Annotated[str, flag("--kv", "KV formats: bf16, fp8, int8, int4, ...", metavar="FORMAT,...")]
TpOption = Annotated[str, flag("--tp", "Tensor-parallel degrees.", metavar="N,...")]
WorkspaceOption = Annotated[
    str, flag("--workspace", "Memory for all but weights and cache: 10% or 2GB.", metavar="SHARE|SIZE,...")
]
UnitsOption = Annotated[
    Unit, flag("--units", "How sizes are counted: labels, bare numbers and the answer.", case_sensitive=False)
]
EngineOption = Annotated[str, flag("--engine", "Engine whose real parts stand beside the rule.", metavar="NAME")]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
