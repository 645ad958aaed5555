"""Executors: one module each, whose name is that of the executor."""
