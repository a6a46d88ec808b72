"""Kinds of remarks, and the kinds of things that they are about."""

from __future__ import annotations

from typing import Final

from django.db import models

#: The inbox of assignments to somebody else than who wrote them, by the ids of their remarks.
ASSIGNED_TOPIC: Final = "remark-assigned"


class RemarkEvent(models.TextChoices):
    """Kinds of remarks: a note, or a step in who looks after the subject."""

    NOTE = "note", "note"
    ACKNOWLEDGE = "acknowledge", "acknowledged"
    ASSIGN = "assign", "assigned"
    HAND_BACK = "hand_back", "handed back"


class SubjectKind(models.TextChoices):
    """Kinds of subjects; what is about the shift as a whole has the kind `log`."""

    DAG = "dag", "DAG"
    SITE = "site", "site"
    FAILURE = "failure", "failure group"
    LOG = "log", "shift log"
