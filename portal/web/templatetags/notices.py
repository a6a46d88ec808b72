"""Template filter for the address of the object that a notice is about."""

from __future__ import annotations

from django import template

from wms.notices.messages import path_of
from wms.notices.models import Notice

register = template.Library()


@register.filter
def notice_path(notice: Notice) -> str:
    """Address of the page of a notice's object."""
    return path_of(notice.subject_kind, notice.subject_id)
