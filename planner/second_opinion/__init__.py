"""What another model of speed says about the pools of a finished plan. It changes nothing in the plan."""

from __future__ import annotations

from planner.second_opinion.review import review
from planner.second_opinion.types import Absent, Figures, Opinion, Question, Reply, Review, Reviewer, Uncovered

__all__ = ["Absent", "Figures", "Opinion", "Question", "Reply", "Review", "Reviewer", "Uncovered", "review"]
