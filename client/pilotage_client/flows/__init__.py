"""Flows: each call of the API, or several that belong together, as a generator of requests."""
