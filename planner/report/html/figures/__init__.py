"""The charts of a page, one module each: functions of the plan, and of what the spec adds where a chart needs that."""

from planner.report.html.figures.ahead import ahead
from planner.report.html.figures.cost import cost
from planner.report.html.figures.hours import hours
from planner.report.html.figures.latency import latency, not_drawn
from planner.report.html.figures.memory import memory
from planner.report.html.figures.roofline import roofline

__all__ = ["ahead", "cost", "hours", "latency", "memory", "not_drawn", "roofline"]
