"""A shell script with a `vllm serve` command for every pool."""

from __future__ import annotations

from planner.export.script import script_target

TARGET = script_target("vllm", "a shell script that starts a replica of any pool with `vllm serve`")
