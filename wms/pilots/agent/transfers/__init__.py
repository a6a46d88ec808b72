"""Transfers of a job's files from their URLs, by the pilot itself: checked addresses, limits."""
