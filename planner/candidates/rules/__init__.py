"""One module per pruning rule; each defines `RULE`."""
