"""Resources of one payload: limits, usage, and what watches the one against the other."""
