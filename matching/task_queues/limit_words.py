"""Concurrency limits of jobs' needs: words of a name and an amount, such as `matlab:2`."""

from __future__ import annotations


def limit_word(name: str, amount: float) -> str:
    """The word for an amount of a limit."""
    return name if amount == 1 else f"{name}:{amount:g}"


def name_and_amount(word: str) -> tuple[str, float]:
    """The name of a limit, and how much of it is used."""
    name, _, amount = word.partition(":")
    return name, float(amount or 1)
