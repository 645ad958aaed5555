"""Flags of commands that read measurements: the files, and what result files of benchmark tools do not write."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _stated(name: str, help: str, metavar: str) -> Any:
    return typer.Option(name, help=f"Result files: {help}", metavar=metavar, show_default=False)


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV of start-up logs or speed measurements, or JSON of vllm bench, guidellm, aiperf; - for standard input.",
    ),
]
GpuOption = Annotated[str | None, _stated("--gpu", "GPU that was measured.", "NAME")]
GpusOption = Annotated[str | None, _stated("--gpus", "GPUs of the deployment.", "N")]
TpOption = Annotated[str | None, _stated("--tp", "tensor-parallel degree.", "N")]
PpOption = Annotated[str | None, _stated("--pp", "pipeline-parallel degree.", "N")]
ModelOption = Annotated[str | None, _stated("--model", "model, where the file names a path.", "NAME")]
WeightsOption = Annotated[str | None, _stated("--weights", "weight format.", "FORMAT")]
KvOption = Annotated[str | None, _stated("--kv", "KV format.", "FORMAT")]
EngineOption = Annotated[str | None, _stated("--engine", "engine with its version, as `vLLM 0.19.1`.", "NAME")]
SourceOption = Annotated[str | None, _stated("--source", "how these measurements are called.", "NAME")]


def stated(**flags: str | None) -> dict[str, str]:
    """Return the flags that were given."""
    return {name: value for name, value in flags.items() if value is not None}
