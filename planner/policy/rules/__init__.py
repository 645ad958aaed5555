"""One module per policy rule; each defines `RULE`."""
