"""Samples: real files of HTCondor's DAGMan and of its job logs."""

from __future__ import annotations

from pathlib import Path

SAMPLES = Path(__file__).parents[3] / "samples" / "dagman"


def sample(path: str) -> str:
    """Text of a sample."""
    return (SAMPLES / path).read_text()
