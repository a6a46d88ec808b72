"""Changes that sets of inputs have to follow: noted with the change, followed after its commit.

A set that was resolved before the commit of a change and stored after it is not found by who tells
sets of changes. So each new one is noted too, and resolved once more when it is there.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from django.db import transaction

from wms.core.loops import wake_loop
from wms.jobs.models import InputChange

REFRESH_TASK: Final = "wms.jobs.refresh_inputs"


def note_files(names: Collection[str]) -> None:
    """Note that replicas of these files came or went. The caller has opened a transaction."""
    _note([InputChange(name=name) for name in sorted(set(names))])


def note_storages() -> None:
    """Note that storages changed, or what they are near. The caller has opened a transaction."""
    _note([InputChange()])


def note_sets(set_ids: Collection[int]) -> None:
    """Note that these sets are to be resolved."""
    _note([InputChange(input_set_id=set_id) for set_id in sorted(set_ids)])


def _note(changes: list[InputChange]) -> None:
    if changes:
        InputChange.objects.bulk_create(changes, batch_size=1000)
        transaction.on_commit(partial(wake_loop, REFRESH_TASK))
