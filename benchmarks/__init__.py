"""Measurements: `python -m benchmarks.NAME [--quick] --json` prints one JSON object.

A benchmark leaves nothing behind. It starts its own servers, unless DATABASE_URL and REDIS_URL are
set: then it makes a database of its own on that server, uses an empty Redis database, and removes
both at the end. See `benchmarks/base.py` for how to add one.
"""
