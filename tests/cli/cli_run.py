"""Run the command line in this process, with streams, environment and working folder of its own."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from planner.cli import main

WriteSpec = Callable[[str], Path]
ROOT = Path(__file__).parents[2]

TINY = """\
version: 1
fleet: tiny
models:
  chat: {use: llama-3.1-8b, max_model_len: 8k}
workloads:
  assistant:
    model: chat
    traffic: {rate: 2 req/s, input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95: 1 s, tpot_p95: 50 ms}
supply:
  offers: [{provider: aws, region: us-east-1, gpus: [L40S]}]
"""
"""A spec that is planned in half a second."""

DENIED = TINY + "policies: [{max_monthly_cost: 1 USD, id: cap}]\n"
WARNED = TINY + "policies: [{max_monthly_cost: 1 USD, level: warn}]\n"
INFEASIBLE = TINY.replace("rate: 2 req/s", "rate: 200 req/s") + "  limits: {gpus: {L40S: 2}}\n"
UNSERVED = TINY.replace("llama-3.1-8b, max_model_len: 8k", "llama-3.3-70b, weights: [bf16], parallelism: {tensor: [1]}")
WRONG = TINY.replace("ttft_p95", "ttft_p59")
NO_SPECS = pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "yaml/empty"),
        (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)), "yaml/not-text"),
        (b"version: 1\n" + b"# padding\n" * 1_000_000, "yaml/too-large"),
    ],
    ids=["empty", "binary", "10 MB"],
)


@dataclass(frozen=True)
class Run:
    """What a run left: its exit code and what it wrote."""

    code: int
    out: str
    err: str


def run(
    *arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None, encoding: str = "utf-8"
) -> Run:
    """Run `planner` with arguments; nothing of the environment but `env` sets a flag or a colour."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="") for _ in range(2))
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PLANNER_") and "COLOR" not in k}
    with (
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
        mock.patch.dict(os.environ, {**clean, "COLUMNS": "80", **(env or {})}, clear=True),
    ):
        code = main([str(a) for a in arguments])
    return Run(code, _text(out, encoding), _text(err, encoding))


def _text(stream: io.TextIOWrapper, encoding: str) -> str:
    stream.flush()
    written: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return written.decode(encoding)
