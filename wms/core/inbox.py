"""Inbox of events by topic: entries are stored with the change, and the task that reads is woken.

It is woken when the transaction of the change commits. The app that reads a topic registers its
task, so that the app that announces does not import it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from wms.core.loops import wake_loop
from wms.core.models import InboxEntry

_TASK_BY_TOPIC: dict[str, str] = {}


def register_reader(topic: str, task: str) -> None:
    """Register the task that reads a topic; called by the reading app when it is set up."""
    _TASK_BY_TOPIC[topic] = task


def announce(entries: Iterable[InboxEntry]) -> None:
    """Store entries in the caller's transaction, and wake their readers when it is committed."""
    stored = InboxEntry.objects.bulk_create(entries, batch_size=1000)
    wake_readers({entry.topic for entry in stored})


def wake_readers(topics: Iterable[str]) -> None:
    """Wake the readers of these topics when the caller's transaction is committed."""
    for topic in sorted(topics):
        task = _TASK_BY_TOPIC.get(topic)
        if task is not None:
            transaction.on_commit(partial(wake_loop, task))
