"""Plans of the space that DAGs take: in which order, and which allocation may be granted now."""
