"""One module per constraint family; each defines `CONSTRAINT`."""
