"""The examples of the page about `planner size`: each is run, so that the page shows what the command prints."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial

from typer.testing import CliRunner

from planner.cli.size import app

EXAMPLES: Mapping[str, str] = {
    "kv": "kv --model llama-3-8b --context 2048,8192,32768 --batch 1,32",
    "decode": "decode --model llama-3-8b --gpu a100-sxm-40gb,h100-sxm --weights bf16,int8,int4",
    "intensity": "intensity --gpu h100-sxm --batch 1,32,128,256,295,512",
    "hbm": "hbm --model llama-3-8b --gpu h100-sxm --context 8192 --batch 64",
    "concurrency": (
        "concurrency --model llama-2-7b --params 7B --gpu a100-sxm-40gb --context 4096,8192 --kv fp16,int8,int4"
        " --units GiB --weights-memory 14 --workspace 2"
    ),
    "training": "training --model llama-3-8b --gpu h100-sxm --batch 8 --checkpoint none,layer,sqrt",
    "offload": "offload --params 70B --weights int4 --gpu rtx-4090 --cpu-weights 0,38.3%,60%",
    "reserve": "kv --model llama-2-7b --kv fp16 --context 100,2000 --reserve 8192",
}


def example(command: str) -> str:
    """Return a command with what it prints, as a block of the page."""
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0, done.stderr
    return f"```text\n$ planner size {command}\n{done.stdout}```"


def example_parts() -> dict[str, Callable[[], str]]:
    """Return the generated parts of the page by name."""
    return {name: partial(example, command) for name, command in EXAMPLES.items()}
