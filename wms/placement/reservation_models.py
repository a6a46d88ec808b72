"""Model of what storages' servers were asked for and no allocation tells of yet."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models


def new_key() -> str:
    """Key of an ask, which nobody can guess."""
    return secrets.token_hex(16)


class AskedReservation(models.Model):
    """Space that an attempt asks a server for: written before, deleted with the allocation's row.

    One whose attempt has ended, or that has none, is owed to the server.
    """

    key = models.CharField(
        max_length=32, primary_key=True, help_text="Told to the program: the same ask, if repeated."
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="asked_reservations"
    )
    request = models.ForeignKey(
        "placement.PlacementRequest",
        null=True,
        on_delete=models.SET_NULL,
        related_name="asked_reservations",
    )
    attempt_number = models.PositiveSmallIntegerField(help_text="0 for one that was released.")
    # No foreign key, as that of workspaces.
    limited_to = models.BigIntegerField(
        null=True,
        help_text="Id of the frontend that it is limited to; empty: its owner's credentials serve.",
    )
    endpoint = models.TextField()
    reservation = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="What the server calls it, once it has answered.",
    )
    size_bytes = models.BigIntegerField()
    duration_s = models.BigIntegerField()
    due_at = models.DateTimeField(help_text="When it is looked at, or tried to be given back.")
    expires_at = models.DateTimeField(help_text="When the server ends it in any case.")
    silent_until = models.DateTimeField(
        null=True, help_text="The server did not answer: nothing there is tried before."
    )

    def __str__(self) -> str:
        return f"reservation {self.key} at {self.endpoint}"
