"""YAML text to a plain tree in which every value knows its line and column."""

from planner.source.document import Document, YamlPath, format_path
from planner.source.files import FilePath
from planner.source.nearest import nearest
from planner.source.parse import MAX_SOURCE_BYTES, parse
from planner.source.read import Source, source_of

__all__ = [
    "MAX_SOURCE_BYTES",
    "Document",
    "FilePath",
    "Source",
    "YamlPath",
    "format_path",
    "nearest",
    "parse",
    "source_of",
]
