"""Selection of rows for a bulk operation: named ids, all rows that a list showed, or a filter.

A list sends a signed token along with its rows: its filter, the time, the number of rows, and the
user. Whoever sends it back means exactly what was shown. A second token confirms the preview of an
operation. Also the rows that pass the filter of an operation now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core import signing
from django.db.models import QuerySet

from portal.lists.base_filter import ListFilter
from portal.lists.registry import ListSpec, apply_filter, find_list
from wms.actions.registry import find_kind
from wms.bulk.models import BulkOperation
from wms.bulk.services import Selection
from wms.core.database.counting import Count
from wms.core.errors import InvalidInput, NotFound, PilotageError
from wms.core.models import User

#: How long a token is good for, in seconds.
TOKEN_LIFE_S = 24 * 3600
#: So many objects are named one by one at the most.
MAX_NAMED = 10_000
_SALT = "pilotage.selection"
_OPERATION_SALT = "pilotage.operation"


class SelectionRefused(PilotageError):
    """The token does not identify rows: open the list again."""


def token_of(kind: ListSpec, list_filter: ListFilter, total: Count, user: User) -> str:
    """Signed token of a list: which rows "all rows" are."""
    content = {
        "list": kind.name,
        "filters": list_filter.parameters(),
        "at": list_filter.now.isoformat(),
        "count": total.value,
        "about": total.is_estimate,
        "user": user.pk,
    }
    return signing.dumps(content, salt=_SALT, compress=True)


def all_shown(token: str, list_name: str, user: User) -> Selection:
    """All rows of the list that sent the token, as they are now. Raises SelectionRefused."""
    content = _read(token)
    if content["user"] != user.pk:
        raise SelectionRefused(
            "This selection was made by somebody else: open the list yourself and select anew."
        )
    if content["list"] != list_name:
        raise SelectionRefused(f"This selection is one of {content['list']}, not of {list_name}.")
    instant = datetime.fromisoformat(content["at"])
    return Selection(
        list_name=list_name,
        rows=apply_filter(list_name, content["filters"], user, now=instant),
        filters=content["filters"],
        snapshot_at=instant,
        shown=content["count"],
        is_estimate=content["about"],
    )


def _read(token: str) -> dict[str, Any]:
    try:
        content: dict[str, Any] = signing.loads(token, salt=_SALT, max_age=TOKEN_LIFE_S)
    except signing.SignatureExpired as error:
        raise SelectionRefused(
            "The list was opened more than a day ago: open it again and select anew."
        ) from error
    except signing.BadSignature as error:
        raise SelectionRefused(
            "This selection does not come from a list of this portal, or was changed on its way: "
            "open the list again and select anew."
        ) from error
    return content


def by_filter(
    list_name: str, filters: Mapping[str, Any], user: User, *, now: datetime
) -> Selection:
    """All rows that pass a filter now. Raises NotFound, InvalidInput."""
    kept = find_list(list_name).normalised(filters)
    rows = apply_filter(list_name, kept, user, now=now)
    return Selection(list_name, rows, filters=kept, snapshot_at=now)


def named(list_name: str, ids: Sequence[int], user: User) -> Selection:
    """Rows with these ids. Raises NotFound for one that is missing or that the user may not see."""
    wanted = set(ids)
    if not wanted:
        raise InvalidInput.of("Nothing is selected: tick some rows first.", field="ids")
    if len(wanted) > MAX_NAMED:
        message = f"at most {MAX_NAMED:,} are named one by one; use a filter for more"
        raise InvalidInput.of(message, field="ids")
    kind = find_kind(list_name)
    rows = find_list(list_name).rows(user).filter(pk__in=wanted)
    missing = wanted.difference(rows.order_by().values_list("pk", flat=True))
    if missing:
        raise NotFound(f"There is no {kind.noun} {min(missing)}, or you may not see it.")
    return Selection(list_name, rows)


def numbers(texts: Sequence[str]) -> list[int]:
    """Ids from a form. Raises NotFound for a text that is no id."""
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise NotFound(f"There is nothing with the number {text[:40]!r}.")
    return [int(text) for text in texts]


def still_matching(operation: BulkOperation) -> QuerySet[Any] | None:
    """Rows that pass the operation's filter now; None when its objects were named.

    Relative times count back from when the list was shown.
    """
    if operation.filters is None:
        return None
    return apply_filter(
        operation.list_name, operation.filters, operation.owner, now=operation.snapshot_at
    )


def operation_token(operation: BulkOperation) -> str:
    """Token by which a program confirms a preview."""
    content = {"operation": operation.pk, "user": operation.owner_id}
    return signing.dumps(content, salt=_OPERATION_SALT)


def operation_of(token: str, user: User) -> int:
    """Operation that a token confirms. Raises SelectionRefused."""
    try:
        content = signing.loads(token, salt=_OPERATION_SALT, max_age=TOKEN_LIFE_S)
    except signing.SignatureExpired as error:
        raise SelectionRefused("This preview is more than a day old: ask for a new one.") from error
    except signing.BadSignature as error:
        raise SelectionRefused(
            "This operation_token does not come from a preview of this portal."
        ) from error
    if content["user"] != user.pk:
        raise SelectionRefused("This operation_token was given to somebody else.")
    return int(content["operation"])
