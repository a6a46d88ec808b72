"""Model of users' credentials for transfers."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class PlacementCredential(models.Model):
    """Credential of a user's transfers at an endpoint: a password, token or key, stored sealed."""

    class Kind(models.TextChoices):
        """Kind of the secret."""

        PASSWORD = "password", "password of a user"
        TOKEN = "token", "bearer token"
        KEY = "key", "SSH key of a user"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="placement_credentials"
    )
    scheme = models.CharField(max_length=32)
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    kind = models.CharField(max_length=16, choices=Kind)
    user = models.CharField(max_length=255, blank=True, help_text="Whose password or key it is.")
    sealed = models.TextField(editable=False, help_text="The secret, encrypted.")
    created_at = models.DateTimeField(db_default=Now())
    replaced_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["scheme", "host", "port"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "scheme", "host", "port"], name="placement_credential_once"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["password", "token", "key"]),
                name="placement_credential_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}" + (f":{self.port}" if self.port else "")
