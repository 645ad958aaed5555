"""What an export knows of a serving engine: its program, the flags of its settings, its images."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from planner.plan.schema import Pool, Serving

PORT = 8000
WIDE_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""What engines call weight formats that need no quantisation."""
PLANNED_BLOCK_SIZE = 16
"""Tokens per block where the spec does not say; engines then keep their own default, which suits their kernels."""


class Unsupported(Exception):  # noqa: N818
    """Something of a pool that an engine or a target cannot express, and what to do about it."""

    def __init__(self, reason: str, *help: str, code: str = "export/unsupported") -> None:
        self.reason, self.help, self.code = reason, help, code
        super().__init__(reason)


@dataclass(frozen=True)
class Launch:
    """One replica of a pool as its engine is to start it, with the weights of `model`, quantised as they load or not."""

    pool: Pool
    serving: Serving
    model: str
    quantised_on_load: bool

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.pool.tensor_parallel * self.pool.pipeline_parallel * self.pool.attention_data_parallel

    @property
    def nodes(self) -> int:
        """Nodes that one replica spans."""
        return -(-self.gpus // self.serving.gpus_in_node)


REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
Settings = Mapping[str, str | None]
"""Values of settings by their name in `Engine.flags`; None for a flag without a value."""


SHARED_FLAGS: Mapping[str, str] = {
    "served_name": "--served-model-name",
    "host": "--host",
    "port": "--port",
    "tensor": "--tensor-parallel-size",
    "pipeline": "--pipeline-parallel-size",
    "data": "--data-parallel-size",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "kv_cache": "--kv-cache-dtype",
    "nodes": "--nnodes",
    "rank": "--node-rank",
}
"""Flags that engines write alike."""


@dataclass(frozen=True)
class Engine:
    """A serving engine: `settings` returns what a replica is started with, `flags` how each setting is written.

    The flags are those of release `version`, read in `source`. `images` are container images by GPU vendor and `package` is
    what pip installs, with `{version}` for a full release number. `on_load` returns the quantisation that turns 16-bit
    weights into a format while they load, None where the engine documents none. `leader` follows the address of the
    first node of a replica, and `worker` are the settings of all nodes but that one. `running` is the metric of the
    requests that a server works on.
    """

    name: str
    version: str
    source: str
    program: tuple[str, ...]
    flags: Mapping[str, str]
    settings: Callable[[Launch], Settings]
    on_load: Callable[[str, str], str | None]
    images: Mapping[str, str]
    package: str
    running: str
    leader: str = ""
    worker: tuple[str, ...] = ()

    def arguments(self, settings: Settings) -> Iterator[tuple[str, ...]]:
        """Yield flags with their values. A value that looks like a flag is tied to its own; without a flag, it stands alone."""
        for name, value in settings.items():
            flag = self.flags[name]
            if value is None:
                yield (flag,)
            elif not flag:
                yield (value,)
            else:
                yield (f"{flag}={value}",) if value.startswith("-") else (flag, value)

    def joining(self, nodes: int, rank: str, leader: str) -> Settings:
        """Return the settings that join the nodes of a replica, given how a file refers to rank and leader."""
        return {"nodes": str(nodes), "rank": rank, "leader": leader + self.leader}


@cache
def all_engines() -> Mapping[str, Engine]:
    """Return every engine of the package `engines` by name: a new file there is a new engine."""
    package = importlib.import_module("planner.export.engines")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return {module.ENGINE.name: module.ENGINE for module in sorted(modules, key=lambda m: str(m.ENGINE.name))}


def full_release(version: str) -> str:
    """Return the number of a release as tags have it: `0.33` is the line that starts with `0.33.0`."""
    return f"{version}.0" if version.count(".") == 1 else version


def hugging_face(launch: Launch) -> str:
    """Return the address of the weights on Hugging Face. Raises `Unsupported` for weights that lie elsewhere."""
    if not REPOSITORY.fullmatch(launch.model):
        raise Unsupported(f"`{launch.model}` is no repository of Hugging Face, which is what this target loads")
    return f"hf://{launch.model}"


def shared_settings(
    launch: Launch, tensor: int, kv_cache: Mapping[str, str], on_load: Callable[[str, str], str | None]
) -> dict[str, str | None]:
    """Return the settings that engines have alike: sizes above one, formats, lengths and caps of a replica, memory.

    `tensor` is the engine's tensor-parallel size, `kv_cache` what it calls each format. Raises `Unsupported` for others.
    """
    pool, serving = launch.pool, launch.serving
    if pool.kv_cache not in kv_cache:
        raise Unsupported(
            f"{pool.engine.name} has no {pool.kv_cache} KV cache",
            f"set kv_cache to some of {', '.join(kv_cache)} and solve again",
        )
    sizes = {
        "tensor": tensor,
        "pipeline": pool.pipeline_parallel,
        "data": pool.attention_data_parallel,
        "expert": pool.expert_parallel,
    }
    found: dict[str, str | None] = {name: str(size) for name, size in sizes.items() if size > 1}
    if pool.weights in WIDE_DTYPES:
        found["dtype"] = WIDE_DTYPES[pool.weights]
    if launch.quantised_on_load:
        found["quantization"] = on_load(pool.weights, pool.engine.version)
    found["kv_cache"] = kv_cache[pool.kv_cache]
    found["max_model_len"] = str(pool.max_model_len)
    found["max_num_seqs"] = str(pool.max_num_seqs)
    found["max_num_batched_tokens"] = str(pool.max_num_batched_tokens)
    found["memory"] = f"{serving.gpu_memory_utilization:g}"
    if serving.block_size != PLANNED_BLOCK_SIZE:
        found["block_size"] = str(serving.block_size)
    return found


def served_by(launch: Launch, host: str, port: str) -> Settings:
    """Return the settings that say what is served under which name, and where."""
    return {"model": launch.model, "served_name": launch.pool.model, "host": host, "port": port}
