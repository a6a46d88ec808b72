"""Filters of lists by a column, their form fields, and the syntax of values in addresses and API.

`a` or `a,b` or the parameter twice: any of these. `!a`: not that. `5..9`, `5..`, `..9`: a range.
Times are ISO dates and times, in UTC unless they say otherwise, or `24h`, `7d`: so long ago.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import django_filters as filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.utils import extend_schema_field

from wms.core.selectors import user_ids

MAX_ID = 2**63 - 1
#: More values than that in one filter are no question that a person asks.
MAX_VALUES = 100
MAX_LENGTH = 200

#: User name that stands for whoever asks, in every filter of users.
ME = "me"
_NOT = "!"
_TO = ".."
_AGO = re.compile(r"([0-9]{1,6})(min|h|d|w)")
_UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_NO_TIME = "Give a time such as 24h, 2026-11-20, 2026-11-20T17:30, or a range of two: A..B."
_NO_NUMBER = "Enter a number."
_TEXTS = {"type": "array", "items": {"type": "string"}}


class ManyValues(forms.TextInput):
    """Reads every value of a parameter; shows them in one line."""

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Mapping[str, Any], name: str
    ) -> list[str]:
        """The texts of a parameter, empty ones left out."""
        found = data.getlist(name) if hasattr(data, "getlist") else data.get(name)
        texts = found if isinstance(found, list | tuple) else [found]
        return [str(text).strip() for text in texts if text is not None and str(text).strip()]

    def format_value(self, value: Any) -> str:
        """The texts as they can be written in one field."""
        return ", ".join(value or [])


class HiddenValues(ManyValues):
    """For links, not for people to fill in."""

    input_type = "hidden"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Parsed values to include and to exclude; with `included` empty everything is wanted."""

    included: tuple[Any, ...] = ()
    excluded: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A range with both ends in it; an end that is None is open."""

    start: Any
    end: Any

    def has(self, value: Any) -> bool:
        """True for a value inside."""
        return (self.start is None or value >= self.start) and (
            self.end is None or value <= self.end
        )

    def ends(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Both ends of a stretch of time, as moments."""
        return _at(self.start, now), _at(self.end, now)

    def condition(self, name: str) -> Q:
        """True for rows whose column is inside."""
        above = {} if self.start is None else {f"{name}__gte": self.start}
        below = {} if self.end is None else {f"{name}__lte": self.end}
        return Q(**above, **below)


class ChosenField(forms.Field):
    """Values of which any is wanted, and others behind `!` that are not, where it `can_flip`."""

    widget = ManyValues
    separator = ","
    can_flip = True

    def split(self, texts: Sequence[str]) -> list[str]:
        """The single values, each once, in the order in which they were given."""
        parts = [part.strip() for text in texts for part in self._parts(text)]
        return list(dict.fromkeys(part for part in parts if part))

    def _parts(self, text: str) -> list[str]:
        return text.split(self.separator) if self.separator else [text]

    def to_python(self, value: Sequence[str] | None) -> Chosen | None:
        """Parse every value; None for none. Raises ValidationError with the first fault."""
        texts = self.split(value or [])
        if not texts:
            return None
        if len(texts) > MAX_VALUES:
            raise forms.ValidationError(f"Give at most {MAX_VALUES} values.")
        if any(len(text) > MAX_LENGTH for text in texts):
            raise forms.ValidationError(f"A value has at most {MAX_LENGTH} characters.")
        if any("\0" in text for text in texts):
            raise forms.ValidationError("Null characters are not allowed.")
        if any(not text.removeprefix(_NOT).strip() for text in texts):
            raise forms.ValidationError(f"Write behind {_NOT} what is not wanted.")
        included = [text for text in texts if not text.startswith(_NOT)]
        excluded = [text[1:].strip() for text in texts if text.startswith(_NOT)]
        return self.chosen(included, excluded)

    def chosen(self, included: Sequence[str], excluded: Sequence[str]) -> Chosen:
        """Parsed value of the texts. Raises ValidationError."""
        return Chosen(*(tuple(map(self.parsed, texts)) for texts in (included, excluded)))

    def parsed(self, text: str) -> Any:
        """Parsed value of one text. Raises ValidationError."""
        return text


class WordsField(ChosenField):
    """Words; with `choices`, only those."""

    def __init__(self, *, choices: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        super().__init__(**options)
        self.choices = choices

    def parsed(self, text: str) -> str:
        """The word."""
        if self.choices and text not in dict(self.choices):
            known = ", ".join(value for value, _ in self.choices)
            raise forms.ValidationError(
                f"Select a valid choice. {text} is not one of the available choices: {known}."
            )
        return text


class TextsField(ChosenField):
    """Parts of a text, which may have commas."""

    separator = ""


class OwnersField(ChosenField):
    """User names, as ids: with those the planner knows how much each has. One query.

    `me` stays as it is: who asks is known to the filter.
    """

    def chosen(self, included: Sequence[str], excluded: Sequence[str]) -> Chosen:
        """The ids of the users; a name that nobody has is that of nobody."""
        known: dict[str, Any] = {**user_ids([*included, *excluded]), ME: ME}
        return Chosen(
            tuple(known.get(name, 0) for name in included),
            tuple(known[name] for name in excluded if name in known),
        )


class NumbersField(ChosenField):
    """Whole numbers and ranges of them."""

    def __init__(self, *, smallest: int = 0, largest: int = MAX_ID, **options: Any) -> None:
        super().__init__(**options)
        self.smallest, self.largest = smallest, largest

    def parsed(self, text: str) -> Span:
        """The range; a single number begins and ends one."""
        first, is_range, last = text.partition(_TO)
        if not is_range:
            return Span(self._number(first), self._number(first))
        if not (first.strip() or last.strip()):
            raise forms.ValidationError(_NO_NUMBER)
        start, end = (self._number(part) if part.strip() else None for part in (first, last))
        if start is not None and end is not None and start > end:
            raise forms.ValidationError(f"The range {text} ends before it begins.")
        return Span(start, end)

    def _number(self, text: str) -> int:
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise forms.ValidationError(_NO_NUMBER)
        if not self.smallest <= int(digits) <= self.largest:
            raise forms.ValidationError(f"Give a number from {self.smallest} to {self.largest}.")
        return int(digits)


class MomentsField(ChosenField):
    """One stretch of time. Its ends are moments, or lengths of time before now."""

    separator = ""
    can_flip = False

    def chosen(self, included: Sequence[str], excluded: Sequence[str]) -> Chosen:
        """The stretch."""
        if excluded or len(included) > 1:
            raise forms.ValidationError("Give one stretch of time, without !.")
        return Chosen(tuple(map(self.parsed, included)))

    def parsed(self, text: str) -> Span:
        """The stretch; a day alone is that day, a length of time reaches until now."""
        first, is_range, last = text.partition(_TO)
        if is_range and not (first.strip() or last.strip()):
            raise forms.ValidationError(_NO_TIME)
        start = _moment(first, is_end=False) if first.strip() else None
        if is_range:
            end = _moment(last, is_end=True) if last.strip() else None
            if type(start) is type(end) and _is_turned(start, end):
                raise forms.ValidationError(f"The range {text} ends before it begins.")
            return Span(start, end)
        if isinstance(start, datetime):
            if _is_day(first):
                return Span(start, _moment(first, is_end=True))
            raise forms.ValidationError(f"From then on is {text}..; until then is ..{text}")
        return Span(start, None)


def _is_turned(start: Any, end: Any) -> bool:
    """True if the end comes first. Lengths of time count backwards from now."""
    return bool(start < end if isinstance(start, timedelta) else start > end)


def _is_day(text: str) -> bool:
    return len(text.strip()) == len("2026-11-20")


def _moment(text: str, *, is_end: bool) -> datetime | timedelta:
    """A moment, or how long ago. A day as the end of a stretch is the end of that day."""
    text = text.strip()
    if ago := _AGO.fullmatch(text):
        return int(ago[1]) * _UNITS[ago[2]]
    try:
        day = parse_date(text)
        found = _of_day(day, is_end) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise forms.ValidationError(_NO_TIME)
    try:
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise forms.ValidationError(_NO_TIME) from None


def _of_day(day: date, is_end: bool) -> datetime:
    return datetime.combine(day, time.max if is_end else time.min, tzinfo=UTC)


class YesNoField(forms.Field):
    """True or false."""

    widget = ManyValues

    def to_python(self, value: Sequence[str] | None) -> bool | None:
        """The answer; None for none."""
        if not value:
            return None
        if len(value) > 1 or value[0] not in {"true", "false"}:
            raise forms.ValidationError("must be true or false")
        return value[0] == "true"


class Described(filters.Filter):
    """A filter that tells in the API's document what can stand in it."""

    schema: Mapping[str, Any] = _TEXTS
    hint = "Several with commas; ! before one: not."

    def __init__(self, *positional: Any, **options: Any) -> None:
        super().__init__(*positional, **options)
        choices = ", ".join(value for value, _ in options.get("choices", ()))
        parts = [f"{options['label']}.", f"Of {choices}." if choices else "", self.hint]
        schema = {**self.schema, "description": " ".join(filter(None, parts))}
        extend_schema_field(schema)(self)


class _Chosen(Described):
    """Keeps the rows that have any of the included values and none of the excluded ones."""

    def condition(self, values: Sequence[Any]) -> Q:
        """True for rows that have any of the values."""
        return Q(**{f"{self.field_name}__in": values})

    def filter(self, queryset: QuerySet[Any], value: Chosen | None) -> QuerySet[Any]:
        """Rows that pass the filter."""
        if value and value.included:
            queryset = queryset.filter(self.condition(value.included))
        if value and value.excluded:
            queryset = queryset.exclude(self.condition(value.excluded))
        return queryset


class Words(_Chosen):
    """A column that equals any of some words."""

    field_class = WordsField


def users_of(value: Chosen | None, asking: int | None) -> Chosen | None:
    """Chosen users with the id of who asks for `me`; 0, which nobody has, where it is unknown."""
    if value is None:
        return None
    ids = [
        tuple((asking or 0) if each == ME else each for each in users)
        for users in (value.included, value.excluded)
    ]
    return Chosen(*ids)


class Owners(_Chosen):
    """A column of users, asked for by their names."""

    field_class = OwnersField
    hint = "User names, me: one's own; several with commas; ! before one: not."

    def filter(self, queryset: QuerySet[Any], value: Chosen | None) -> QuerySet[Any]:
        """Rows that pass the filter."""
        return super().filter(queryset, users_of(value, self.parent.asking))


class Texts(_Chosen):
    """A column of text that contains any of some parts, in upper or lower case."""

    field_class = TextsField
    hint = "! before one: not."

    def condition(self, values: Sequence[str]) -> Q:
        """True for rows whose text contains any of the parts."""
        return _any(Q(**{f"{self.field_name}__icontains": value}) for value in values)


def in_ranges(column: str, values: Sequence[Span]) -> Q:
    """Condition for rows whose number in this column is in any of the ranges."""
    single = [span.start for span in values if span.start == span.end]
    ranges = [span.condition(column) for span in values if span.start != span.end]
    if len(single) == 1:
        ranges.append(Q(**{column: single[0]}))
    elif single:
        ranges.append(Q(**{f"{column}__in": single}))
    return _any(ranges)


class Numbers(_Chosen):
    """A column of whole numbers that is in any of some ranges."""

    field_class = NumbersField
    hint = "5, 5..9, 5.. or ..9; several with commas; ! before one: not."

    def condition(self, values: Sequence[Span]) -> Q:
        """True for rows whose number is in any of the ranges."""
        return in_ranges(self.field_name, values)


class Moments(_Chosen):
    """A column of times that lies in a stretch."""

    field_class = MomentsField
    schema: Mapping[str, Any] = {"type": "string"}
    hint = "24h (so long ago until now), 2026-11-20 (that day) or A..B; in UTC."

    def condition(self, values: Sequence[Span]) -> Q:
        """True for rows whose time is in the stretch, seen from the moment of the question."""
        now: datetime = self.parent.now
        return _any(Span(*span.ends(now)).condition(self.field_name) for span in values)


class YesNo(Described):
    """A column that is true or false."""

    field_class = YesNoField
    schema: Mapping[str, Any] = {"type": "boolean"}
    hint = ""


def _at(end: datetime | timedelta | None, now: datetime) -> datetime | None:
    if not isinstance(end, timedelta):
        return end
    # So long ago may be before the first year that there is.
    try:
        return now - end
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _any(conditions: Any) -> Q:
    whole = Q()
    for condition in conditions:
        whole |= condition
    return whole


def hidden_numbers(field_name: str, label: str, **options: Any) -> Numbers:
    """A filter by the id of something else: for links, not for people to fill in."""
    return Numbers(field_name=field_name, label=label, smallest=1, widget=HiddenValues, **options)
