"""Failures, grouped by cause: one group for each normalised message."""
