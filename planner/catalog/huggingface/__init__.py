"""Models from the `config.json` of a Hugging Face repository: read, checked, counted, never guessed."""

from __future__ import annotations

from planner.catalog.huggingface.entry import entry_from_config
from planner.catalog.huggingface.fields import UnsupportedConfig
from planner.catalog.huggingface.read import parse_config, read_config
from planner.catalog.huggingface.writing import entry_yaml

__all__ = ["UnsupportedConfig", "entry_from_config", "entry_yaml", "parse_config", "read_config"]
