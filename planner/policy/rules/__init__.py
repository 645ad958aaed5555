"""One module per policy rule; each defines `NAME` and `check`."""
