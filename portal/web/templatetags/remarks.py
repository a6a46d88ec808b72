"""Template tags of remarks: links in their texts, page of a subject, care of failure groups."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from wms.failures.models import FailureGroup
from wms.remarks.models import Remark
from wms.remarks.selectors import NO_CARE, Care
from wms.remarks.states import SubjectKind
from wms.remarks.subjects import SUBJECTS

register = template.Library()

_ADDRESS = re.compile(r"(https?://[^\s<>\"'`\\]+)")
#: Signs that end a sentence and not an address.
_TRAILING = ".,;:!?)]}"
_LONGEST_SHOWN = 60
_PAGES = {
    SubjectKind.DAG: "web:dag",
    SubjectKind.SITE: "web:site",
    SubjectKind.FAILURE: "web:error",
}


def page_of_subject(kind: str, key: str) -> str:
    """Address of the page of a subject; empty if it has none."""
    name = _PAGES.get(SubjectKind(kind))
    try:
        return reverse(name, args=[key if kind == SubjectKind.SITE else int(key)]) if name else ""
    except NoReverseMatch:
        return ""


@register.filter
def subject_page(remark: Remark) -> str:
    """Address of the page of a remark's subject; empty if it has none."""
    return page_of_subject(remark.subject_kind, subject_key(remark))


@register.filter
def subject_key(remark: Remark) -> str:
    """Handle of a remark's subject, as it was when the remark was written."""
    of_kind = SUBJECTS.get(remark.subject_kind)
    is_named = of_kind is not None and of_kind.handle == "name"
    return remark.subject_name if is_named else str(remark.subject_id or "")


@register.filter
def linked(text: str) -> SafeString:
    """Text in which addresses of http and https are links, and everything else is as typed."""
    return format_html_join("", "{}", ((_part(part),) for part in _ADDRESS.split(text)))


def _part(part: str) -> str | SafeString:
    if not _ADDRESS.fullmatch(part):
        return part
    address = part.rstrip(_TRAILING)
    return format_html("{}{}", link_to(address), part[len(address) :])


@register.filter
def link_to(address: str) -> SafeString:
    """Link to another site, which learns nothing of this page; a long address is cut."""
    shown = address.split("://", 1)[-1]
    cut = f"{shown[: _LONGEST_SHOWN - 1]}…" if len(shown) > _LONGEST_SHOWN else shown
    return format_html('<a href="{}" rel="noopener noreferrer nofollow">{}</a>', address, cut)


@register.filter
def care_for(cares: Mapping[tuple[str, int], Care], group: FailureGroup) -> Care:
    """Care of a failure group among others."""
    return cares.get((SubjectKind.FAILURE, group.pk), NO_CARE)
