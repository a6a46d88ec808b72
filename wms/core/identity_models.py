"""Models of identities: who an account is at an identity provider; and what providers publish."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Identity(models.Model):
    """Account's identity at a provider: the subject that an issuer names, and nothing else.

    A subject is never given to somebody else by its issuer; names and addresses of mail are.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities"
    )
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class IssuerDocument(models.Model):
    """Configuration and keys of an issuer, as it published them last.

    They are kept here so that all processes check tokens by the same ones, also while the issuer is
    away and after a restart. `tried_at` holds back those who would ask too often.
    """

    issuer = models.CharField(max_length=500, unique=True)
    configuration = models.JSONField(default=dict)
    keys = models.JSONField(default=dict)
    fetched_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.issuer
