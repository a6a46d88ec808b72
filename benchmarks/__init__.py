"""Measurements: `python -m benchmarks.NAME [--quick] --json` prints one JSON object.

A benchmark leaves nothing behind. It starts its own servers, unless DATABASE_URL and REDIS_URL are
set: then it makes a database of its own on that server, and removes it at the end; the Redis is its
own in any case. See `benchmarks/base.py` for how to add one.
"""
