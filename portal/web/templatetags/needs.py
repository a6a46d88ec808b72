"""Template filter that tells a job's needs in one line."""

from __future__ import annotations

from django import template

from matching.task_queues.needs import Needs
from portal.web.jobs.needs import words_of

register = template.Library()


@register.filter
def needs_in_words(needs: Needs) -> str:
    """Needs of a job in one line, without the owner."""
    return words_of(needs)
