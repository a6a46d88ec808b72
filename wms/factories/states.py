"""States of pilots that are ordered of a factory, in the words of the exchange."""

from __future__ import annotations

from django.db import models


class OrderState(models.TextChoices):
    """State of an ordered pilot: as its batch system tells it, or before that, as the factory."""

    NEW = "", "not confirmed"
    QUEUED = "queued", "queued"
    HELD = "held", "held"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"
    MISSING = "missing", "missing"


#: What a factory may tell; the last one of an order that it does not know.
TOLD = tuple(state.value for state in OrderState if state.value)
ENDED = frozenset({OrderState.DONE.value, OrderState.FAILED.value, OrderState.CANCELLED.value})
