"""Models of users and roles, API tokens, inbox entries, control loops, and audit entries.

Also the abstract base of all event tables (`EventRecord`).
"""

from __future__ import annotations

import copy
from typing import ClassVar, Self

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Value
from django.db.models.functions import Now

from wms.core import idempotency_models as idempotency_models
from wms.core import identity_models as identity_models
from wms.core import restoration_models as restoration_models
from wms.core.database.actor_field import ActorField
from wms.core.database.packed_numbers import PackedNumbersField
from wms.core.database.state_field import StateField


class Role(models.TextChoices):
    """Role of a user; each includes those before it."""

    VIEWER = "viewer", "viewer"
    USER = "user", "user"
    SITE_ADMIN = "site_admin", "site administrator"
    SHIFTER = "shifter", "shifter"
    OPERATOR = "operator", "operator"
    ADMIN = "admin", "admin"


class User(AbstractUser):
    """A person or a service that logs in or holds a token."""

    role = models.CharField(max_length=16, choices=Role, default=Role.USER, db_default=Role.USER)
    is_service = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="A program's: it has neither password nor login, and tokens only.",
    )
    #: Id of the frontend that the token is limited to by which the user came in: no column.
    limited_to: int | None = None

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="user_role_known"
            ),
            models.CheckConstraint(
                condition=models.Q(is_service=False)
                | models.Q(
                    ~models.Q(role="admin"),
                    password__startswith=UNUSABLE_PASSWORD_PREFIX,
                    is_staff=False,
                    is_superuser=False,
                ),
                name="user_service_has_no_login",
            ),
        ]

    def within(self, frontend_id: int | None) -> Self:
        """The user as a token shows them that is limited to this frontend; None: as they are."""
        if frontend_id is None:
            return self
        limited = copy.copy(self)
        limited.limited_to = frontend_id
        return limited


class ServiceAccounts(UserManager["ServiceAccount"]):
    """Manager of the accounts of services alone."""

    use_in_migrations = False

    def get_queryset(self) -> models.QuerySet[ServiceAccount]:
        """Accounts of services."""
        return super().get_queryset().filter(is_service=True)


class ServiceAccount(User):
    """Account of a program: without password and login, it has tokens only."""

    objects: ClassVar[ServiceAccounts] = ServiceAccounts()

    class Meta:
        proxy = True
        verbose_name = "service account"


class Scope(models.TextChoices):
    """Uses of a token; what its user may not, it may not either."""

    READ = "read", "read"
    SUBMIT = "submit", "submit"
    CONTROL = "control", "control"
    SITE = "site", "site"
    ADMIN = "admin", "admin"


def every_scope() -> list[str]:
    """All scopes: of a token without limits."""
    return list(Scope.values)


class TokenKind(models.TextChoices):
    """Kinds of tokens: for the API, or for the address of one wallboard."""

    API = "api", "API"
    WALLBOARD = "wallboard", "wallboard"


class ApiToken(models.Model):
    """A credential for the API. Only the hash is stored; the prefix names it in lists.

    That of a wallboard opens nothing else: see `wms.core.wallboards`.
    """

    kind = models.CharField(
        max_length=12,
        choices=TokenKind,
        default=TokenKind.API,
        db_default=TokenKind.API.value,
        editable=False,
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    secret_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)
    scopes = ArrayField(
        models.CharField(max_length=16, choices=Scope),
        default=every_scope,
        db_default=Value("{read,submit,control,site,admin}"),
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    login = models.ForeignKey(
        "core.Identity",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="tokens",
        help_text="The identity by whose logins it is renewed; empty: it is not.",
    )
    login_key = models.CharField(
        max_length=64, default="", db_default="", editable=False,
        help_text="Hash of the ID token by which it was made, which makes no other.",
    )  # fmt: skip
    former_sha256 = models.CharField(
        max_length=64, default="", db_default="", editable=False,
        help_text="Hash of the secret before the last renewal.",
    )  # fmt: skip
    former_until = models.DateTimeField(null=True, editable=False)
    frontend = models.ForeignKey(
        "accounting.Frontend",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="tokens",
        help_text="The frontend that it is limited to: it sees and steers what is of this one, and "
        "nothing else. Empty: it is not limited.",
    )
    frontend_name = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="What that is called; it outlives the frontend.",
    )

    class Meta:
        verbose_name = "API token"
        constraints = [
            models.UniqueConstraint(
                fields=["login_key"], condition=~models.Q(login_key=""), name="login_key_once"
            ),
            models.CheckConstraint(
                condition=models.Q(frontend=None) | ~models.Q(frontend_name=""),
                name="token_limit_has_a_name",
            ),
            models.CheckConstraint(
                condition=models.Q(kind=TokenKind.API)
                | models.Q(kind=TokenKind.WALLBOARD, scopes=[]),
                name="token_of_wallboard_has_no_scope",
            ),
            # Without its frontend it would reach everything.
            models.CheckConstraint(
                condition=models.Q(frontend_name="")
                | models.Q(frontend__isnull=False)
                | models.Q(revoked_at__isnull=False),
                name="token_limit_never_widens",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"

    @property
    def limit(self) -> str | None:
        """Name of the frontend that it is limited to, which may be gone; None: it is not."""
        return self.frontend_name or None


class EventRecord(models.Model):
    """One change of one object: append-only, written in the transaction of the change."""

    event = models.CharField(max_length=32)
    from_state = StateField(max_length=16, blank=True)
    to_state = StateField(max_length=16, blank=True)
    actor = ActorField(max_length=160)
    reason = models.TextField(blank=True)
    facts = PackedNumbersField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True


class InboxEntry(models.Model):
    """Entry that a higher app has not read yet: its kind, and the id of the subject of this kind.

    Written with the event and deleted by its reader, in the transaction that acts on it: an event
    whose transaction commits late is never missed, and none is acted on twice.
    """

    class Kind(models.TextChoices):
        """Kind of the subject."""

        JOB_EVENT = "job event", "an event of a job"
        NODE_EVENT = "node event", "an event of a node"
        PILOT_EVENT = "pilot event", "an event of a pilot"
        DAG_EVENT = "dag event", "an event of a DAG"
        SITE_EVENT = "site event", "an event of a site"
        GROUP_EVENT = "group event", "an event of a failure group"
        SCRIPT_RUN = "script run", "a script run that has ended"
        REQUEST = "request", "a placement request that has ended"
        DAG = "dag", "a DAG"
        GROUP = "group", "a failure group"
        SCHEDULE_RUN = "schedule run", "a time of a schedule"
        REMARK = "remark", "a remark of a person"
        LOOK = "look", "nothing: look again"
        BEGIN = "begin", "nothing: look again, and for what could begin"

    topic = models.CharField(max_length=16, help_text="Who reads it.")
    key = models.BigIntegerField(
        help_text="Groups entries that are read together, e.g. a DAG's id."
    )
    kind = models.CharField(max_length=16, choices=Kind)
    subject_id = models.BigIntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["topic", "key"], name="inbox_topic_key")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["look", "begin"], subject_id__isnull=True)
                | (~models.Q(kind__in=["look", "begin"]) & models.Q(subject_id__isnull=False)),
                name="inbox_kind_has_its_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic}/{self.key}: {self.kind} {self.subject_id or ''}"


class ControlLoop(models.Model):
    """Last run of one periodic loop, and since when its first one is awaited."""

    name = models.CharField(max_length=64, unique=True)
    known_since = models.DateTimeField(db_default=Now())
    period_s = models.FloatField()
    started_at = models.DateTimeField(null=True)
    duration_s = models.FloatField(null=True)
    report = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class AuditKind(models.TextChoices):
    """Kind of the object that was changed."""

    DAG = "dag", "DAG"
    JOB = "job", "job"
    CLUSTER = "cluster", "cluster"
    PLACEMENT = "placement", "placement"
    PILOT = "pilot", "pilot"
    SITE = "site", "site"
    QUEUE = "queue", "queue"
    FAILURE = "failure", "failure group"
    SCHEDULE = "schedule", "schedule"
    OPERATION = "operation", "bulk operation"
    ACCOUNT = "account", "account"
    PERSONAL = "personal", "personal"
    CONFIGURATION = "configuration", "configuration"


class AuditEntry(models.Model):
    """Action of a person on one object, with its reason: one row for each object.

    `object_kind` and `object_key` follow from the target: by them an object's page finds its part.
    """

    actor = models.CharField(max_length=160)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=160)
    object_kind = models.CharField(
        max_length=16,
        choices=AuditKind,
        default=AuditKind.CONFIGURATION,
        db_default=AuditKind.CONFIGURATION,
    )
    object_key = models.CharField(max_length=160, default="", db_default="")
    reason = models.TextField(blank=True)
    facts = models.JSONField(
        default=dict, blank=True, help_text="Of a change: each field with its old and new value."
    )
    request_id = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="The request that asked for it, as it stands in the log; empty: none did.",
    )
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["target", "-id"], name="audit_by_target"),
            models.Index(fields=["object_kind", "object_key", "id"], name="audit_by_object"),
            models.Index(fields=["actor", "id"], name="audit_by_actor"),
            models.Index(fields=["action", "id"], name="audit_by_action"),
            models.Index(
                fields=["request_id"],
                condition=~models.Q(request_id=""),
                name="audit_by_request",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(object_kind__in=AuditKind.values), name="audit_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.target}"


class UnsealedEntry(models.Model):
    """Entry of the audit trail without a seal yet; a trigger writes it with the entry.

    It is deleted in the transaction that seals the entry: one whose transaction commits late is
    sealed later, and none is left out.
    """

    entry_id = models.BigIntegerField(primary_key=True)

    class Meta:
        verbose_name_plural = "unsealed entries"

    def __str__(self) -> str:
        return f"audit entry {self.entry_id}"


class AuditSeal(models.Model):
    """Seal of a batch of audit entries: a hash over them and over the seal before.

    Seals are numbered from 1 on without a gap. `entry_sha256s` has 32 bytes for each entry.
    """

    number = models.BigIntegerField(primary_key=True)
    entry_ids = ArrayField(models.BigIntegerField())
    entry_sha256s = models.BinaryField()
    previous_sha256 = models.CharField(max_length=64)
    sha256 = models.CharField(max_length=64, unique=True)
    sealed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"seal {self.number}"
