"""Model of a credential: what a frontend's pilots are submitted with at a queue, or at a site."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from wms.accounting.models import Frontend
from wms.elements.logins import LoginKind
from wms.sites.models import Queue, Site

_NAME = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Use letters, digits, points, hyphens and underscores."
)
_ACCOUNT = RegexValidator(r"\A[A-Za-z0-9_][A-Za-z0-9_.@-]*\Z", "Use the name of an account.")
_DIRECTORY = RegexValidator(
    r"\A/[^%\x00-\x1f\x7f]*\Z", "Use an absolute path without percent signs."
)


class Credential(models.Model):
    """Credential of a frontend at a queue, or at the queues of a site that take its kind.

    What is secret is stored sealed, and shown to nobody. `new_secret` is what is to be sealed with
    the next save; it is in no column.
    """

    class Kind(models.TextChoices):
        """Kinds of credentials: those of logins, in words."""

        SSH_KEY = LoginKind.SSH_KEY.value, "SSH private key"
        HTCONDOR_TOKEN = LoginKind.HTCONDOR_TOKEN.value, "HTCondor token"
        BEARER_TOKEN = LoginKind.BEARER_TOKEN.value, "bearer token"
        CERTIFICATE = LoginKind.CERTIFICATE.value, "certificate or proxy with its key"

    new_secret: str = ""

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    frontend = models.ForeignKey(
        Frontend,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="credentials",
        help_text="Whose pilots are submitted with it; empty: those of the default frontend.",
    )
    queue = models.ForeignKey(
        Queue,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="credentials",
        help_text="Where it is used; it goes before one of the queue's site.",
    )
    site = models.ForeignKey(
        Site,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="credentials",
        help_text="In place of a queue: it is used at all queues of the site that take its kind.",
    )
    kind = models.CharField(max_length=16, choices=Kind)
    account = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        validators=[_ACCOUNT],
        help_text="With an SSH key: who is logged in; empty: the user in the queue's settings.",
    )
    directory = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[_DIRECTORY],
        help_text="With an SSH key: where that account's pilots are, in place of the directory in "
        "the queue's settings.",
    )
    is_enabled = models.BooleanField(
        default=True,
        help_text="With one that is off no pilot is submitted; what was submitted with it is still "
        "asked for and removed.",
    )
    valid_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when it is used; empty: until the time that it tells itself, if any.",
    )
    told_until = models.DateTimeField(
        null=True, editable=False, help_text="The end that its secret tells itself."
    )
    expires_at = models.DateTimeField(
        null=True, editable=False, help_text="The earlier of that time and the one it tells itself."
    )
    fingerprint = models.CharField(max_length=80, editable=False)
    subject = models.CharField(
        max_length=255, blank=True, editable=False, help_text="Whom it names, if anybody."
    )
    sealed = models.TextField(editable=False, help_text="The secret, encrypted.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    replaced_at = models.DateTimeField(
        null=True, editable=False, help_text="When its secret was set anew last."
    )
    last_used_at = models.DateTimeField(
        null=True, editable=False, help_text="When a batch system was shown it last, to the minute."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(queue=None, site__isnull=False) | Q(queue__isnull=False, site=None),
                name="credential_of_queue_or_site",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=[each.value for each in LoginKind]),
                name="credential_kind_known",
            ),
            models.UniqueConstraint(
                fields=["queue", "frontend"],
                condition=Q(queue__isnull=False),
                nulls_distinct=False,
                name="one_credential_at_a_queue",
            ),
            models.UniqueConstraint(
                fields=["site", "frontend", "kind"],
                condition=Q(site__isnull=False),
                nulls_distinct=False,
                name="one_credential_of_a_kind_at_a_site",
            ),
        ]

    def __str__(self) -> str:
        return self.name
