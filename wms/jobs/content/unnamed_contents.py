"""Garbage collection of stored contents (blobs) that no row names any more, safe beside uploads.

A content is named by the foreign keys to its row. One that none names gets a mark; a day later, if
it still has that mark and no name, row and file are deleted under the row's lock. An upload of the
same content takes the mark away, or waits for that lock and makes the row anew
(`wms.jobs.content.blobs`). So whoever has stored a content has a day to name it. Files without a
row get one, with a mark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import islice

from django.db import connection, transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef, Q

from wms.core.storage.current import current_store, writable_store
from wms.core.storage.protocol import ReadableStore
from wms.jobs.content.blobs import blob_key
from wms.jobs.models import Blob

#: So long a mark stands before the content goes.
GRACE = timedelta(days=1)
#: Contents that one transaction deletes, and that one turn looks at for a mark.
_DELETED_AT_ONCE = 500
_LOOKED_AT = 2000
#: Folders of the store.
FOLDERS = 256
#: So many contents that lack are told.
_MISSING_TOLD = 20
_SHA256 = re.compile("[0-9a-f]{64}")


def naming_relations() -> list[ForeignObjectRel]:
    """All foreign keys to contents, of whatever app: the models tell them."""
    fields = Blob._meta.get_fields(include_hidden=True)
    return [each for each in fields if isinstance(each, ForeignObjectRel)]


def _is_named() -> Q:
    named = Q(pk__in=())
    for relation in naming_relations():
        rows = relation.related_model._base_manager.filter(**{relation.field.name: OuterRef("pk")})
        named |= Q(Exists(rows))
    return named


def mark_unnamed(sha256s: Collection[str], *, now: datetime) -> int:
    """Mark those of these contents that nothing names; the number of marks."""
    bare = Blob.objects.filter(~_is_named(), pk__in=sha256s, unnamed_since=None)
    return bare.update(unnamed_since=now)


def mark_next(*, now: datetime, after: str) -> tuple[str, int]:
    """Mark what nothing names of the contents that follow `after`.

    Returns where to go on, empty after the last one, and the number of marks.
    """
    following = Blob.objects.filter(pk__gt=after).order_by("pk")
    looked_at = list(following.values_list("pk", flat=True)[:_LOOKED_AT])
    marks = mark_unnamed(looked_at, now=now) if looked_at else 0
    return looked_at[-1] if len(looked_at) == _LOOKED_AT else "", marks


@transaction.atomic
def delete_unnamed(*, now: datetime) -> tuple[int, int]:
    """Delete the contents whose marks are old, a batch of them; their number and bytes.

    Those that were named again lose their marks, those that are locked are passed over.
    """
    due = Blob.objects.filter(unnamed_since__lt=now - GRACE).order_by("unnamed_since")
    locked = list(due.select_for_update(skip_locked=True)[:_DELETED_AT_ONCE])
    # A statement of its own: it sees what was named before the rows were locked.
    keys = [each.pk for each in locked]
    named = set(Blob.objects.filter(_is_named(), pk__in=keys).values_list("pk", flat=True))
    Blob.objects.filter(pk__in=named).update(unnamed_since=None)
    gone = [each for each in locked if each.pk not in named]
    if not gone:
        return 0, 0
    store = writable_store()
    Blob.objects.filter(pk__in=[each.pk for each in gone]).delete()
    # What names a row after all is told now, while its file is there.
    connection.check_constraints()
    store.delete([blob_key(each.pk) for each in gone])
    return len(gone), sum(each.size_bytes for each in gone)


def mark_strays(*, now: datetime, folder: int) -> int:
    """Give rows with marks to files of a folder that have none; the number of files.

    Such a file is left by a transaction that was rolled back, or by a power cut.
    """
    found = {
        name: each
        for each in current_store().listed(f"{folder % FOLDERS:02x}")
        # What only ends so belongs to others: below a prefix, or beside all of them.
        if _SHA256.fullmatch(name := each.key.rpartition("/")[2]) and each.key == blob_key(name)
    }
    known = Blob.objects.filter(pk__in=found).values_list("pk", flat=True) if found else ()
    # Younger ones belong to transactions that are not at their end.
    rows = [
        Blob(sha256=name, size_bytes=found[name].size_bytes, unnamed_since=now)
        for name in sorted(found.keys() - set(known))
        if found[name].modified_at < now - GRACE
    ]
    Blob.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def missing_contents(store: ReadableStore) -> list[str]:
    """The first contents in use that a store has not, or not in their size."""
    return list(islice(each_missing(store), _MISSING_TOLD))


def each_missing(store: ReadableStore) -> Iterator[str]:
    """All contents in use that a store has not, or not in their size; a folder of it at a time."""
    for number in range(FOLDERS):
        start = f"{number:02x}"
        rows = Blob.objects.filter(pk__startswith=start, unnamed_since=None)
        wanted = {blob_key(pk): size for pk, size in rows.values_list("pk", "size_bytes")}
        if wanted:
            for each in store.listed(start):
                if wanted.get(each.key) == each.size_bytes:
                    del wanted[each.key]
            yield from (key.rpartition("/")[2] for key in sorted(wanted))
