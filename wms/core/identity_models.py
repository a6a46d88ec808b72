"""Models of identities: who an account is at an identity provider; and what providers publish."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from wms.core.database.actor_field import ActorField


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
    linked_by = ActorField(
        max_length=160, default="", db_default="", editable=False,
        help_text="Who linked it; empty: it is not known.",
    )  # fmt: skip
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class NamedSubject(models.Model):
    """Last use of the signed tokens of a subject whose account the settings name, not a link.

    It gives no right: without the settings' line the account is not found by it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="named_subjects"
    )
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    last_used_at = models.DateTimeField()
    last_used_from = models.GenericIPAddressField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="named_subject_once"),
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
