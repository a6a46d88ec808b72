"""Query parameters of the history: range, resolution, function, site or frontend, style."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from django import forms
from django.utils.dateparse import parse_date, parse_datetime

from matching.round_robin_archives import (
    ARCHIVES,
    Archive,
    Resolution,
    archive_named,
    resolution_for,
)
from portal.history.groupings import MOST_BINS, MOST_TOP, USUAL_TOP, GroupBy, bins_in
from portal.history.palettes import Scheme
from portal.history.parts import WHOLE, Part
from portal.personal.zones import zone_named
from wms.accounting.frontends import DEFAULT_KEY
from wms.accounting.selectors import visible_frontends
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.history.frontends import DEFAULT_ID, sees_default

#: At most so many points of a series are drawn; a narrow chart asks for fewer.
MOST_POINTS = 1500
#: So many of a figure that leaves the pages, if nothing is said: one for two pixels of a sheet.
USUAL_POINTS = 500
_DAY = timedelta(days=1)
#: The ranges that have a button.
RANGES = {
    "1h": ("1 h", timedelta(hours=1)),
    "6h": ("6 h", timedelta(hours=6)),
    "1d": ("1 d", _DAY),
    "1w": ("1 w", 7 * _DAY),
    "1m": ("1 m", 30 * _DAY),
    "1y": ("1 y", 365 * _DAY),
    "5y": ("5 y", 5 * 365 * _DAY),
}
USUAL_RANGE = "1d"
FUNCTIONS = {"avg": "mean and max", "min": "minimum", "max": "maximum", "last": "last value"}
#: More is not kept.
LONGEST = timedelta(days=ARCHIVES[-1].slots)
_SHORTEST = timedelta(minutes=1)
_SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Moment(forms.Field):
    """A time such as `2026-11-20T12:00`, with or without a zone, or a day; UTC where none is."""

    default_error_messages = {"invalid": "Write a time as 2026-11-20T12:00 (UTC) or 2026-11-20."}

    def to_python(self, value: Any) -> datetime | None:
        """The time, in UTC. Raises ValidationError."""
        text = str(value or "").strip()
        if not text:
            return None
        try:
            found = parse_datetime(text.replace(" ", "T", 1)) or _midnight(parse_date(text))
            if found is None:
                raise ValueError(text)
            # Far from our time a change of the zone leaves the calendar.
            return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError):
            raise forms.ValidationError(self.error_messages["invalid"], "invalid") from None


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time.min)


class WindowForm(forms.Form):
    """Query parameters of a window; all are optional.

    A frontend that the user may not see is as one that there is not.
    """

    range = forms.ChoiceField(
        choices=[(name, label) for name, (label, _) in RANGES.items()],
        required=False,
        error_messages={"invalid_choice": f"Choose one of {', '.join(RANGES)}."},
    )
    site = forms.CharField(required=False)
    frontend = forms.CharField(required=False)
    function = forms.ChoiceField(
        choices=list(FUNCTIONS.items()),
        required=False,
        error_messages={"invalid_choice": f"Choose one of {', '.join(FUNCTIONS)}."},
    )
    points = forms.IntegerField(
        required=False,
        min_value=10,
        max_value=MOST_POINTS,
        error_messages={
            "invalid": "Give a whole number.",
            "min_value": "At least 10 points are drawn.",
            "max_value": f"At most {MOST_POINTS} points are drawn.",
        },
    )
    resolution = forms.ChoiceField(
        choices=[("auto", "as fits"), *((ring.name, ring.name) for ring in ARCHIVES)],
        required=False,
        error_messages={
            "invalid_choice": f"Choose one of auto, {', '.join(ring.name for ring in ARCHIVES)}."
        },
    )

    group_by = forms.ChoiceField(
        choices=[(by.value, by.value) for by in GroupBy],
        required=False,
        error_messages={"invalid_choice": f"Choose one of {', '.join(GroupBy)}."},
    )
    top = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TOP,
        error_messages={
            "invalid": "Give a whole number.",
            "min_value": "At least 1 is drawn by itself.",
            "max_value": f"At most {MOST_TOP} are drawn by themselves.",
        },
    )

    def __init__(self, data: Mapping[str, Any], *, now: datetime, user: User) -> None:
        super().__init__(data)
        self.now, self.user = now, user
        self.frontend_id = 0
        # A word of the language cannot be the name of an attribute.
        self.fields["from"] = Moment(required=False, label="From")
        self.fields["to"] = Moment(required=False, label="To")

    def clean_site(self) -> str:
        """A name that a site can have. Others have no history."""
        name: str = self.cleaned_data["site"]
        if name and not _SITE.fullmatch(name):
            raise forms.ValidationError("This is no name of a site.")
        return name

    def clean_frontend(self) -> str:
        """Name of a frontend that the user may see, or the default one's key."""
        name: str = self.cleaned_data["frontend"]
        if name == DEFAULT_KEY and sees_default(self.user):
            self.frontend_id = DEFAULT_ID
        elif name:
            found = visible_frontends(self.user).filter(name=name).values_list("pk", flat=True)
            if not (ids := list(found)):
                raise forms.ValidationError("There is no such frontend, or you may not see it.")
            self.frontend_id = ids[0]
        return name

    def clean(self) -> dict[str, Any]:
        """Check that the times make a range, and that one part is chosen at most."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if data.get("site") and data.get("frontend"):
            self.add_error("frontend", "Choose a site or a frontend, not both.")
        if data.get("group_by"):
            self._check_grouping(data)
        since, until = data.get("from"), data.get("to")
        if until is not None and since is None and "from" not in self.errors:
            self.add_error("from", "Give the beginning as well.")
        if since is not None and since >= self.now:
            self.add_error("from", "This is in the future: nothing was sampled yet.")
        elif since is not None:
            self._check_length(since, until or self.now)
        return data

    def _check_grouping(self, data: Mapping[str, Any]) -> None:
        if data.get("frontend"):
            self.add_error("group_by", "Group, or choose a frontend, not both.")
        if data.get("site") and data["group_by"] == GroupBy.SITE:
            self.add_error("group_by", "Choose all sites to group by them.")
        if data.get("function") not in ("", "avg", None):
            self.add_error("function", "Groups are drawn by their mean: choose no other function.")

    def _check_length(self, since: datetime, until: datetime) -> None:
        if until - since < _SHORTEST:
            self.add_error("to", "The end must be a minute or more after the beginning.")
        elif until - since > LONGEST or until <= self.now - LONGEST:
            self.add_error("from", "More than five years are not kept.")


class FigureForm(WindowForm):
    """Query parameters of a window and of the style of an exported figure."""

    template = forms.ChoiceField(
        choices=[(scheme.value, scheme.value) for scheme in Scheme],
        required=False,
        error_messages={"invalid_choice": f"Choose one of {', '.join(Scheme)}."},
    )
    zone = forms.CharField(required=False)

    def clean_points(self) -> int:
        """Number of points of a line that are drawn."""
        return self.cleaned_data["points"] or USUAL_POINTS

    def clean_template(self) -> Scheme:
        """Scheme of the figure, light by default: reports are printed."""
        return Scheme(self.cleaned_data["template"] or Scheme.LIGHT)

    def clean_zone(self) -> tzinfo:
        """Zone of the times in the figure, UTC by default."""
        name: str = self.cleaned_data["zone"]
        zone = zone_named(name) if name else UTC
        if zone is None:
            raise forms.ValidationError("This is no name of a time zone.")
        return zone


@dataclass(frozen=True, slots=True)
class Window:
    """Part of the history to be shown. `range` is empty for one with its own times."""

    since: datetime
    until: datetime
    now: datetime
    range: str = USUAL_RANGE
    part: Part = WHOLE
    function: str = "avg"
    archive: str = "auto"
    points: int = MOST_POINTS
    group_by: GroupBy | None = None
    top: int = USUAL_TOP

    def resolution(self, *, is_whole: bool = False, is_daily: bool = False) -> Resolution:
        """Bins to be read, combined as the number of drawn points allows, or not at all."""
        archive = None if self.archive == "auto" else archive_named(self.archive)
        if is_daily:
            archive = ARCHIVES[-1]
        elif archive is None and self.group_by:
            archive = self._archive_of_groups()
        found = resolution_for(
            self.since, self.until, now=self.now, most=self.points, archive=archive
        )
        return Resolution(found.archive) if is_whole else found

    def _archive_of_groups(self) -> Archive:
        """Finest archive that reaches back with few bins: they are read of every site."""
        for archive in ARCHIVES:
            is_few = bins_in(self.since, self.until, archive.step_s) <= MOST_BINS
            if is_few and self.since >= archive.oldest_start(self.now):
                return archive
        return ARCHIVES[-1]

    @property
    def length(self) -> timedelta:
        """Length of the window."""
        return self.until - self.since


def window_of(form: WindowForm) -> Window:
    """Window of a form. Raises InvalidInput with every fault, by field."""
    if not form.is_valid():
        raise InvalidInput(
            [Finding(text, field=name) for name, texts in form.errors.items() for text in texts]
        )
    data, now = form.cleaned_data, form.now
    since, until = data["from"], min(data["to"] or now, now)
    chosen = "" if since else data["range"] or USUAL_RANGE
    return Window(
        since=since or now - RANGES[chosen][1],
        until=until if since else now,
        now=now,
        range=chosen,
        part=Part(data["site"], data["frontend"], form.frontend_id),
        function=data["function"] or "avg",
        archive=data["resolution"] or "auto",
        points=data["points"] or MOST_POINTS,
        group_by=GroupBy(data["group_by"]) if data["group_by"] else None,
        top=data["top"] or USUAL_TOP,
    )
