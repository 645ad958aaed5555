"""What-if at scale: many variants of a spec, planned side by side. `run` is the way in."""
