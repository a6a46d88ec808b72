"""Export of a list as CSV or JSON: the rows, columns and order of the page, streamed.

Times are in UTC, whatever zone the page shows. A file has at most MAX_LINES lines, and of a partly
sorted list only the sorted lines; an incomplete file says so in its name, in the HTTP header
X-Is-Cut, and in JSON before the first line. In CSV, an apostrophe precedes a text that a
spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from portal.lists.base_filter import ListFilter
from portal.lists.columns import Column
from portal.lists.list_spec import ListSpec
from wms.core.database.counting import EXACT_UP_TO, count_up_to
from wms.core.errors import InvalidInput
from wms.core.models import User

MAX_LINES = 100_000
TYPES = {"csv": "text/csv", "json": "application/json"}
#: Parameters of an export that are no filters.
OF_EXPORT = frozenset({"columns"})
#: A spreadsheet would take a text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def send_list(
    kind: ListSpec, form: str, parameters: Mapping[str, Any], user: User, *, now: datetime
) -> StreamingHttpResponse:
    """Download of the list. Raises InvalidInput for an unknown filter or column."""
    texts = parameters.getlist("columns") if hasattr(parameters, "getlist") else []
    columns = _columns(kind, [name for text in texts for name in text.split(",") if name])
    filter_values = {
        name: value for name, value in _lists(parameters).items() if name not in OF_EXPORT
    }
    filters = kind.normalised(filter_values)
    list_filter = kind.filter_of(filter_values, user, now=now)
    most = MAX_LINES if list_filter.is_walked else EXACT_UP_TO
    is_cut = count_up_to(list_filter.qs, most) > most
    lines = _lines(kind, list_filter, user)
    write = _as_csv if form == "csv" else _as_json
    head = {
        "list": kind.name,
        "filters": filters,
        "sort": list_filter.order.text,
        "at": _plain(now),
        "is_cut": is_cut,
    }
    answer = StreamingHttpResponse(
        write(columns, lines, head), content_type=f"{TYPES[form]}; charset=utf-8"
    )
    cut = ("first" if list_filter.is_walked else "sorted-among-latest") + f"-{most}"
    name = _file_name(kind, list_filter.kept(), form, now, cut=cut if is_cut else "")
    answer["Content-Disposition"] = content_disposition_header(True, name)
    answer["X-Content-Type-Options"] = "nosniff"
    answer["X-Is-Cut"] = "true" if is_cut else "false"
    return answer


def _lists(parameters: Mapping[str, Any]) -> dict[str, list[str]]:
    return dict(parameters.lists()) if hasattr(parameters, "lists") else dict(parameters)


def _columns(kind: ListSpec, names: Sequence[str]) -> list[Column]:
    unknown = sorted(set(names) - set(kind.column_names()))
    if unknown:
        known = ", ".join(kind.column_names())
        raise InvalidInput.of(f"{unknown[0]} is no column; there are {known}", field="columns")
    return kind.shown_columns(names)


def _lines(kind: ListSpec, list_filter: ListFilter, user: User) -> Iterator[Any]:
    left = MAX_LINES
    for lines in kind.walk(kind, list_filter, user):
        yield from lines[:left]
        left -= len(lines)
        if left <= 0:
            return


def _as_csv(
    columns: Sequence[Column], lines: Iterator[Any], head: Mapping[str, Any]
) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow([name for column in columns for name in column.fields])
    for line in lines:
        yield writer.writerow(
            [csv_cell(value(line)) for column in columns for value in column.fields.values()]
        )


def _as_json(
    columns: Sequence[Column], lines: Iterator[Any], head: Mapping[str, Any]
) -> Iterator[str]:
    yield json.dumps(head)[:-1] + ', "lines": ['
    separator = "\n"
    for line in lines:
        values = {
            name: _plain(value(line)) for column in columns for name, value in column.fields.items()
        }
        yield separator + json.dumps(values, ensure_ascii=False)
        separator = ",\n"
    yield "\n]}\n"


class _Echo:
    """File object whose `write` returns the text."""

    def write(self, text: str) -> str:
        return text


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def csv_cell(value: Any) -> Any:
    """Value of a cell of a CSV file; what a spreadsheet would take for a formula, after a quote."""
    plain = _plain(value)
    if isinstance(plain, dict | list):
        return json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str) and plain.startswith(_FORMULA):
        return f"'{plain}"
    return plain


def _file_name(
    kind: ListSpec, filters: Mapping[str, Sequence[str]], form: str, now: datetime, *, cut: str
) -> str:
    what = "-".join(f"{name}-{'-'.join(values)}" for name, values in filters.items())
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", what.replace("!", "not-")).strip("-.")[:60]
    parts = ["pilotage", kind.name, slug, cut]
    return "-".join(filter(None, [*parts, f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"])) + f".{form}"
