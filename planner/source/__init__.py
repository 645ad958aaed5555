"""YAML text to a plain tree in which every value knows its line and column."""

from planner.source.document import Document, YamlPath, format_path
from planner.source.nearest import nearest
from planner.source.parse import MAX_SOURCE_BYTES, parse
from planner.source.read import Source, read_source

__all__ = ["MAX_SOURCE_BYTES", "Document", "Source", "YamlPath", "format_path", "nearest", "parse", "read_source"]
