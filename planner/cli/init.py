"""`planner init`: write a first spec that solves, with comments that say what to change."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.exits import ExitCode
from planner.cli.options import QuietOption, flag
from planner.cli.schema import SchemaOf, schema_text
from planner.cli.streams import answer, note, save, usage_error

SPEC_NAME = "fleet.yaml"
SCHEMA_NAME = "fleet.schema.json"

FIRST_SPEC = """\
# yaml-language-server: $schema=fleet.schema.json
# A first fleet: one model, one workload, one cloud. Change it, then: planner solve fleet.yaml
version: 1
fleet: first
models:
  chat:
    use: meta-llama/Llama-3.1-8B-Instruct    # names and aliases: planner catalog list models
    max_model_len: 8192                      # longest sequence, input and output together
    # weights: [bf16, fp8]                   # formats to pick from; default: the native one and narrower ones
workloads:
  assistant:
    model: chat
    traffic:
      rate: {peak: 10 req/s, mean: 4 req/s}  # plan for the peak, pay per token at the mean
      input_tokens: {mean: 1000, p95: 3000}
      output_tokens: {mean: 200, p95: 500}
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}    # time to first token, time per output token
supply:
  offers:                                    # where nodes may come from: planner catalog list offers
    - {provider: aws, region: us-east-1, gpus: [L4, A10G, L40S], terms: [on-demand]}
  budget: 20000 USD/month
reliability: {spare_replicas: 1, headroom: 10 %}
planning: {gap: 0.1 %}
"""


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to write into; made if it is not there.")
    ] = Path("."),
    force: Annotated[bool, flag("--force", "Replace a spec that is there.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Write a first spec that solves, fleet.yaml, with its schema for editors.

    Example: planner init, then planner solve fleet.yaml
    """
    spec = folder / SPEC_NAME
    if spec.exists() and not force:
        note(f"planner: {spec} is there already; --force replaces it")
        raise typer.Exit(ExitCode.WRONG_INPUT)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        usage_error(f"cannot make the folder {folder}: {error.strerror or error}")
    for path, text in ((folder / SCHEMA_NAME, schema_text(SchemaOf.SPEC)), (spec, FIRST_SPEC)):
        save(path, text)
        if not quiet:
            note(f"wrote {path}")
    answer(f"Next: planner solve {shlex.quote(str(spec))}\n")
