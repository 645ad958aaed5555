"""Exported scripts start what they say, whatever users call things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from export_plans import HOSTILE, chat, exported, objects, of_pools, over_nodes, places, prod

BASH = "/bin/bash"
pytestmark = pytest.mark.skipif(not Path(BASH).exists(), reason="needs bash")
STUB = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


def started(script: str, folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
    """Run a script where `vllm` and `python3` print their arguments, and return these."""
    for name in ("vllm", "python3"):
        (folder / name).write_text(STUB, encoding="utf-8")
        (folder / name).chmod(0o755)
    path = folder / "serve.sh"
    path.write_text(script, encoding="utf-8")
    subprocess.run([BASH, "-n", path], check=True)
    clean = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **(env or {})}
    done = subprocess.run([BASH, path, *arguments], capture_output=True, text=True, check=False, env=clean, cwd=folder)
    assert done.returncode == 0, done.stderr
    words = json.loads(done.stdout)
    assert isinstance(words, list)
    assert not (folder / "gone").exists()
    return words


def test_a_script_starts_a_replica_of_the_pool_that_it_is_given(tmp_path: Path) -> None:
    script = exported(prod(), "vllm").text

    assert started(script, tmp_path, "code-2", "--seed", "7", env={"PORT": "9001"}) == [
        *("serve", "Qwen/Qwen3-32B", "--served-model-name", "code", "--host", "0.0.0.0", "--port", "9001"),
        *("--tensor-parallel-size", "2", "--quantization", "fp8_per_tensor", "--kv-cache-dtype", "fp8"),
        *("--max-model-len", "32768", "--max-num-seqs", "23", "--max-num-batched-tokens", "2048"),
        *("--gpu-memory-utilization", "0.9", "--enable-prefix-caching", "--enable-chunked-prefill"),
        *("--seed", "7"),
    ]


def test_a_script_without_a_pool_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "serve.sh"
    path.write_text(exported(prod(), "vllm").text, encoding="utf-8")
    for arguments in ([], ["no-such"]):
        done = subprocess.run([BASH, path, *arguments], capture_output=True, text=True, check=False)

        assert done.returncode == 64
        assert [line.strip() for line in done.stderr.splitlines()[2:]] == [p.name for p in prod().pools]


@pytest.mark.parametrize(
    "name", [HOSTILE, "-rf", "--help", "*", "$(touch gone)", "';touch gone;'", "a\nb", "\\", "esac", "in", "!", "("]
)
def test_hostile_names_are_words(name: str, tmp_path: Path) -> None:
    pool = chat(name=name, model=name, checkpoint=f"org/{name}")
    plan = of_pools(pool).model_copy(update={"fleet": name})
    words = started(exported(plan, "vllm").text, tmp_path, name)

    assert words[1] == f"org/{name}"
    tied = [f"--served-model-name={name}"]
    assert words[2:3] == tied if name.startswith("-") else words[2:4] == ["--served-model-name", name]
    (task,) = objects(plan, "skypilot")
    assert started(f"{task['run']}", tmp_path)[:2] == ["serve", f"org/{name}"]


def test_sglang_is_started_as_a_module(tmp_path: Path) -> None:
    words = started(exported(of_pools(chat(engine="sglang")), "sglang").text, tmp_path, "chat-2")

    assert words[:4] == ["-m", "sglang.launch_server", "--model-path", "meta-llama/Llama-3.3-70B-Instruct"]


@pytest.mark.parametrize(
    ("engine", "version", "leader", "worker"),
    [
        ("vllm", "0.33", ["--master-addr", "10.0.0.1"], ["--headless"]),
        ("sglang", "0.5.7", ["--dist-init-addr", "10.0.0.1:20000"], []),
    ],
)
def test_replicas_over_nodes_are_started_on_each(
    engine: str, version: str, leader: list[str], worker: list[str], tmp_path: Path
) -> None:
    plan = of_pools(over_nodes(engine=engine, version=version))
    script = exported(plan, engine).text
    (task,) = objects(plan, "skypilot")
    for rank in ("0", "1"):
        joined = ["--nnodes", "2", "--node-rank", rank, *leader, *(worker if rank == "1" else [])]

        assert (
            started(script, tmp_path, "giant", env={"NODE_RANK": rank, "LEADER": "10.0.0.1"})[-len(joined) :] == joined
        )
        sky = {"SKYPILOT_NODE_RANK": rank, "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2"}
        assert started(task["run"], tmp_path, env=sky)[-len(joined) :] == joined
    assert task["num_nodes"] == 2


def test_a_pool_at_several_places_is_one_command(tmp_path: Path) -> None:
    pool = chat(placement=places(("gcp", "us-central1", 3), ("aws", "us-east-1", 1)))
    script = exported(of_pools(pool), "vllm").text

    assert script.count("exec vllm serve") == 1
    assert "gcp us-central1 x3, aws us-east-1 x1" in script
    assert started(script, tmp_path, "chat-2")[0] == "serve"
