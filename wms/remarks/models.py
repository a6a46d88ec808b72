"""Models of remarks, and of who looks after a subject now."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from wms.remarks.states import RemarkEvent, SubjectKind

#: Most characters of a text, of the address of a ticket, and of the kept name of a subject.
MAX_TEXT = 1000
MAX_TICKET = 500
MAX_NAME = 160


class Remark(models.Model):
    """Remark of a person about a subject, or in the shift log alone; it is never changed.

    The subject is no foreign key: a remark stays when its subject goes, with the name it had.
    """

    event = models.CharField(max_length=12, choices=RemarkEvent)
    subject_kind = models.CharField(max_length=8, choices=SubjectKind)
    subject_id = models.BigIntegerField(null=True)
    subject_name = models.CharField(max_length=MAX_NAME, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    text = models.TextField(blank=True)
    ticket = models.CharField(max_length=MAX_TICKET, blank=True)
    until = models.DateTimeField(null=True, help_text="When an acknowledgement ends; empty: never.")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        help_text="Whom the subject was assigned to.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["subject_kind", "subject_id", "id"], name="remark_by_subject"),
            models.Index(fields=["author", "id"], name="remark_by_author"),
            models.Index(fields=["created_at"], name="remark_by_time"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(event__in=RemarkEvent.values), name="remark_event_known"
            ),
            models.CheckConstraint(
                condition=models.Q(subject_kind__in=SubjectKind.values), name="remark_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(
                    subject_kind=SubjectKind.LOG, subject_id=None, event=RemarkEvent.NOTE
                )
                | (~models.Q(subject_kind=SubjectKind.LOG) & models.Q(subject_id__isnull=False)),
                name="remark_has_subject",
            ),
            models.CheckConstraint(
                condition=models.Q(event=RemarkEvent.ASSIGN, person__isnull=False)
                | (~models.Q(event=RemarkEvent.ASSIGN) & models.Q(person=None)),
                name="remark_assigns_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} about {self.subject_kind} {self.subject_id}"


class Handling(models.Model):
    """Handling of a subject: who has acknowledged it, until when, and whom it is assigned to.

    It follows from the subject's remarks, and is written with them under the lock of this row.
    """

    subject_kind = models.CharField(max_length=8, choices=SubjectKind)
    subject_id = models.BigIntegerField()
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
    )
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_until = models.DateTimeField(null=True)
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    assigned_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], name="handling_of_subject"
            ),
            models.CheckConstraint(
                condition=models.Q(acknowledged_by=None, acknowledged_at=None)
                | models.Q(acknowledged_by__isnull=False, acknowledged_at__isnull=False),
                name="handling_acknowledged_by_somebody",
            ),
            models.CheckConstraint(
                condition=models.Q(assigned_to=None, assigned_at=None)
                | models.Q(assigned_to__isnull=False, assigned_at__isnull=False),
                name="handling_assigned_to_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"handling of {self.subject_kind} {self.subject_id}"
