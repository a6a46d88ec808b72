"""Model of returns of the database to an earlier state."""

from __future__ import annotations

from django.db import models


class Restoration(models.Model):
    """A return of the database to an earlier state, as from a backup.

    What happened between `back_to` and `restored_at` is not known here: jobs that were open then
    may have been done, and are done again.
    """

    back_to = models.DateTimeField(help_text="The time of the state that came back.")
    restored_at = models.DateTimeField()
    origin = models.TextField(help_text="Where it came from: the backup, or what was done.")
    noted_up_to = models.BigIntegerField(
        default=0, db_default=0, help_text="The last job that was told of it; all, when told."
    )
    is_told = models.BooleanField(
        default=False, db_default=False, help_text="All jobs that were open were told of it."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(back_to__lte=models.F("restored_at")),
                name="restoration_goes_back",
            ),
        ]

    def __str__(self) -> str:
        return f"return to {self.back_to:%Y-%m-%d %H:%M} at {self.restored_at:%Y-%m-%d %H:%M}"
