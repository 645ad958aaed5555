"""From a spec and a catalog to rated candidates: resolve, enumerate, rule out, rate, prune (`table.build_table`)."""
