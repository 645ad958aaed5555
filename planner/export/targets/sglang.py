"""A shell script with a `sglang.launch_server` command for every pool."""

from __future__ import annotations

from planner.export.script import script_target

TARGET = script_target("sglang", "a shell script that starts a replica of any pool with SGLang")
