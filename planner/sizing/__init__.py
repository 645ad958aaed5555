"""The textbook calculators of `planner size`: one module each, from a catalog entry or stated figures to one row.

Knows the catalog and the physics; knows no flags and no layout.
"""
