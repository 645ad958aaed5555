"""Deployment files of a plan: pools as their engines and platforms start them, and the nodes to buy as a table."""

from planner.export.choices import Choices
from planner.export.documents import Document, Exported
from planner.export.export import export
from planner.export.target import all_targets

__all__ = ["Choices", "Document", "Exported", "all_targets", "export"]
