"""Fills an empty portal with a production of any size, to try how it looks and how fast it is.

    python -m examples.load --jobs 1000000

What it makes is told in docs/how-to/try-the-portal-at-scale.md.
"""
