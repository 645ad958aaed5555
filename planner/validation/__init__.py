"""Predictions against measurements: start-up logs of engines, row by row, with errors grouped and the worst named."""
