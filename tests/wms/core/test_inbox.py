"""Inbox entries tell by their kind alone of what their subject is the id."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from wms.core.models import InboxEntry

pytestmark = pytest.mark.django_db
KIND = InboxEntry.Kind


@pytest.mark.parametrize(
    ("kind", "subject"), [(KIND.LOOK, 1), (KIND.BEGIN, 0), (KIND.JOB_EVENT, None)]
)
def test_only_what_tells_of_something_has_a_subject(kind: str, subject: int | None) -> None:
    entry = InboxEntry(topic="test", key=1, kind=kind, subject_id=subject)

    with pytest.raises(IntegrityError), transaction.atomic():
        entry.save()
