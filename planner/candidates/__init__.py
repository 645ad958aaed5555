"""From a spec and a catalog to rated candidates: resolve, enumerate, rule out, rate, prune."""

from planner.candidates.table import build_table
from planner.candidates.types import Candidate, CandidateTable, Rejection

__all__ = ["Candidate", "CandidateTable", "Rejection", "build_table"]
