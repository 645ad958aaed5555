"""Files as they are at a revision of a git repository. Nothing is written, fetched or run but git's own reading."""
