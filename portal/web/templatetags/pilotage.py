"""Template tags of every page: state badges and icons, times, numbers, bars of progress.

Bars show the progress of a DAG or a cluster; times are moments and spans. Also the text of a
payload's use of disk, network and processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.personal.zones import in_words
from portal.shared.sizes import size
from portal.shared.state_badges import WORDS, badge_of, meaning_of
from wms.accounting import walls
from wms.core.database.counting import Count
from wms.core.models import User

register = template.Library()

_SHAPES = "img/shapes.svg"
_USED = {
    "disk_mb": "disk",
    "read_mb": "read",
    "written_mb": "written",
    "network_mb": "network",
    "fetched_mb": "fetched",
    "sent_mb": "sent",
}
_LARGE = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@register.simple_tag
def shape(name: str) -> SafeString:
    """Icon of the sprite, as decoration beside a word."""
    return format_html(
        '<svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">'
        '<use href="{}#{}"></use></svg>',
        static(_SHAPES),
        name,
    )


@register.simple_tag
def state(name: str, kind: str = "", label: str = "") -> SafeString:
    """State badge: icon and word; its meaning shows on hovering."""
    badge = badge_of(name, kind)
    return format_html(
        '<span class="state tone-{}" title="{}">{}<span>{}</span></span>',
        badge.tone,
        meaning_of(kind, name),
        shape(badge.shape),
        label or word(name),
    )


@register.filter
def has_frontends(user: User) -> bool:
    """Whether the installation has frontends beside the default one."""
    return walls.has_frontends(user)


@register.filter
def word(name: str) -> str:
    """Display word of a state."""
    return WORDS.get(name, name.replace("_", " "))


@register.simple_tag
def state_shape(name: str) -> SafeString:
    """Icon of a state in its tone, where the word stands nearby."""
    badge = badge_of(name)
    return format_html('<span class="tone-{}">{}</span>', badge.tone, shape(badge.shape))


@register.filter
def tone(name: str) -> str:
    """Tone of a state, for a class name."""
    return badge_of(name).tone


@register.filter
def state_figure(name: str) -> str:
    """Icon name of a state, for the sprite."""
    return badge_of(name).shape


@register.filter
def by_id(known: Mapping[int, Any], object_id: int) -> Any:
    """Value that is known of an object; None where nothing is."""
    return known.get(object_id)


@register.filter
def besides(usage: Mapping[str, float] | None) -> str:
    """Use of a payload other than time and memory, as far as known."""
    known = usage or {}
    texts = [f"{label} {known[name]:.0f} MB" for name, label in _USED.items() if known.get(name)]
    if known.get("processes"):
        texts.append(f"{known['processes']:.0f} processes")
    return ", ".join(texts)


@register.filter
def span(seconds: float | timedelta | None) -> str:
    """Length of time in its two largest units: `1 h 12 min`."""
    if seconds is None:
        return ""
    whole = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if whole < 10:
        return f"{max(whole, 0):.2g} s" if whole >= 0.1 or whole <= 0 else "< 0.1 s"
    rest = round(whole)
    parts = []
    for step, unit in _UNITS:
        count, rest = divmod(rest, step)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return " ".join(part for part in parts[:2] if part)


def _relative(moment: datetime, now: datetime) -> str:
    seconds = round((now - moment).total_seconds())
    if abs(seconds) < 5:
        return "just now"
    size, unit = next(pair for pair in _UNITS if abs(seconds) >= pair[0])
    count = abs(seconds) // size
    return f"{count} {unit} ago" if seconds > 0 else f"in {count} {unit}"


@register.simple_tag
def since(moment: datetime | None) -> SafeString | str:
    """Relative time, kept up to date by a script; the moment itself shows on hovering."""
    if moment is None:
        return ""
    return format_html(
        '<time class="since" datetime="{}" title="{} {}">{}</time>',
        moment.astimezone(UTC).isoformat(timespec="seconds"),
        *in_words(moment),
        _relative(moment, timezone.now()),
    )


@register.simple_tag
def at(moment: datetime | None) -> SafeString | str:
    """Moment in the user's time zone; the relative time shows on hovering."""
    if moment is None:
        return ""
    return format_html(
        '<time class="at" title="{}" datetime="{}">{} <span class="zone">{}</span></time>',
        _relative(moment, timezone.now()),
        moment.astimezone(UTC).isoformat(timespec="seconds"),
        *in_words(moment),
    )


@register.filter
def about(count: Count | int) -> str:
    """A number, exact or, if it is an estimate, as `about 1.2 M`."""
    if isinstance(count, int):
        return f"{count:,}"
    return rounded(count.value) if count.is_estimate else f"{count.value:,}"


@register.filter
def spoken(value: Any) -> str:
    """A value of a change as people read it."""
    if value is None:
        return "nothing"
    return ", ".join(map(str, value)) or "no condition" if isinstance(value, list) else str(value)


def rounded(value: int) -> str:
    """A number in two digits: `about 1.2 M`."""
    size, unit = next((pair for pair in _LARGE if value >= pair[0]), (1, ""))
    digits = 10 ** max(0, len(str(value // size)) - 2) if value >= size else 1
    whole = value / size
    text = f"{whole:.1f}" if whole < 10 else f"{round(whole / digits) * digits:,}"
    return f"about {text.removesuffix('.0')}{f' {unit}' if unit else ''}"


register.filter(size)


#: From the left to the right; what waits is the rest.
_DRAWN = (
    "done",
    "post_running",
    "submitted",
    "pre_running",
    "ready",
    "failed",
    "futile",
    "skipped",
)
_DRAWN_OF_JOBS = (
    "done", "ending", "running", "stalled", "matched", "submitted", "held", "failed", "faulty",
    "killed", "never_made", "waiting", "received",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """Stretch of a progress bar, in percent of its width."""

    state: str
    word: str
    tone: str
    count: int
    x: float
    width: float


@register.inclusion_tag("components/progress.html")
def progress(
    dag: Any, is_large: bool = False, counts: Mapping[str, int] | None = None
) -> Mapping[str, Any]:
    """Progress of a DAG as a hatched bar and as text.

    By its counters, which do not tell scripts from what waits, or by the counts of all states.
    """
    known = counts or {
        "done": dag.done_count,
        "submitted": dag.submitted_count,
        "ready": dag.ready_count,
        "failed": dag.failed_count,
        "futile": dag.futile_count,
        "skipped": dag.skipped_count,
    }
    total = dag.node_count or 1
    parts = _parts({name: known.get(name, 0) for name in _DRAWN}, total)
    waiting = dag.node_count - sum(part.count for part in parts)
    return {
        "parts": parts,
        "done": known.get("done", 0),
        "total": dag.node_count,
        "noun": "nodes",
        "waiting": max(waiting, 0),
        "waiting_word": "waiting",
        "percent": 100 * dag.done_count // total,
        "is_large": is_large,
    }


@register.inclusion_tag("components/progress.html")
def cluster_progress(cluster: Any, is_large: bool = False, cells: Any = ()) -> Mapping[str, Any]:
    """Progress of a cluster as a hatched bar and as text, by its counters or by all its states."""
    counted = {cell.state: cell.count for cell in cells}
    known = counted or {
        "done": cluster.done_count,
        "submitted": cluster.live_count,
        "failed": cluster.failed_count,
        "faulty": cluster.faulty_count,
        "killed": cluster.killed_count,
    }
    parts = _parts({name: known.get(name, 0) for name in _DRAWN_OF_JOBS}, cluster.size)
    return {
        "parts": parts,
        "done": cluster.done_count,
        "total": cluster.size,
        "noun": "jobs",
        "waiting": known.get("not_yet_made", 0),
        "waiting_word": word("not_yet_made"),
        "percent": 100 * cluster.done_count // cluster.size,
        "is_large": is_large,
    }


def _parts(counts: Mapping[str, int], total: int) -> list[Part]:
    """Stretches of a bar for the counts that are not 0, in their order."""
    parts, x = [], 0.0
    for name, count in counts.items():
        width = 100 * count / total
        if count:
            tone_of = badge_of(name).tone
            parts.append(Part(name, word(name), tone_of, count, round(x, 3), round(width, 3)))
        x += width
    return parts


@register.inclusion_tag("components/share.html")
def share(count: float, total: float, needs_some: bool = False) -> Mapping[str, Any]:
    """Count of a total as a bar and as text; `needs_some` marks a zero as trouble."""
    percent = min(100.0, round(100 * count / total, 2)) if total else 0.0
    return {"count": count, "total": total, "percent": percent, "needs_some": needs_some}


@register.inclusion_tag("components/portion.html")
def portion(part: float) -> Mapping[str, Any]:
    """Fraction of a whole as a bar and in percent."""
    percent = 100 * part
    text = "< 0.1" if 0 < percent < 0.1 else f"{percent:.1f}".removesuffix(".0")
    return {"width": min(100.0, round(percent, 2)), "percent": text}


@register.filter
def amount(value: float) -> str:
    """Number of any size in three or four digits: a priority, a weight."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}".removesuffix(".0")


@register.filter
def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Names and values of a user's dict: `.items` would find a key of that name."""
    return list((values or {}).items())
