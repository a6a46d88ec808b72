"""Singular or plural words after a number: `1 pilot waits`, `2 pilots wait`."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """Number with its words: `1 pilot waits`, `2 pilots wait`."""
    return f"{number} {one if number == 1 else many}"


def pilots_are(number: int, what: str) -> str:
    """`1 pilot is idle`, `2 pilots are idle`."""
    return counted(number, f"pilot is {what}", f"pilots are {what}")
