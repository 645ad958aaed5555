"""One deployment, everything known about it: what its memory holds, how fast it is, and what it is short of.

Memory needs no numpy; `planner.estimate.speed` does and is imported only where speed is asked for.
"""
