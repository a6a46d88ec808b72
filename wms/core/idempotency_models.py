"""Model of idempotency keys: which request made which object, or was answered with what."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class MadeKind(models.TextChoices):
    """Kind of object that a request with an idempotency key makes."""

    DAG = "dag", "DAG"
    FOLLOWED_DAG = "followed-dag", "followed DAG"
    CLUSTER = "cluster", "cluster"
    PLACEMENT = "placement", "placement request"
    #: Whatever else a request makes: its answer is kept.
    ANSWER = "answer", "answer"


class IdempotencyKey(models.Model):
    """Key of a request that made an object; `object_id` is empty while it is being made.

    For the kind `answer` the answer is kept instead, without what is secret.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=MadeKind)
    key = models.CharField(max_length=128)
    body_sha256 = models.CharField(max_length=64, help_text="Empty: any content is the same.")
    object_id = models.BigIntegerField(null=True)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="idempotency_key_by_age")]
        constraints = [
            models.UniqueConstraint(fields=["owner", "kind", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"
