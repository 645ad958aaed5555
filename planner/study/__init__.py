"""What a report shows beyond its plan, from the spec and the catalog: curves, operating points, alternatives, rows. Nothing is solved."""

from planner.study.alternatives import Considered
from planner.study.curves import LimitCurve, PoolCurves
from planner.study.roofline import OperatingPoint
from planner.study.study import Study, study_of

__all__ = ["Considered", "LimitCurve", "OperatingPoint", "PoolCurves", "Study", "study_of"]
