"""Examples of ClassAd expressions and environments, appended to help texts of form fields.

The administration's forms show them, and the reference of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


@dataclass(frozen=True, slots=True)
class Example:
    """Example of an expression, and its effect."""

    text: str
    meaning: str


#: By the name of the field.
EXAMPLES: Mapping[str, Sequence[Example]] = {
    "requirements": (
        Example("CurMatches < MaxMatches", "the site has room"),
        Example('CurMatches < MaxMatches && TARGET.Owner != "alice"', "and the DAG is not Alice's"),
    ),
    "transfer_requirements": (
        Example("TARGET.SizeBytes < FreeBytes / 2", "files of a known size that leave room"),
        Example('TARGET.Owner != "alice"', "all but Alice's"),
        Example("false", "none: only requests that name it"),
    ),
    "start_expression": (
        Example('MY.Site != "UW"', "everywhere but there"),
        Example("TARGET.RequestMemory <= MY.Memory / 2", "small jobs only"),
    ),
    "rank": (
        Example("0.0", "all DAGs alike"),
        Example('TARGET.Owner == "alice" ? 10 : 0', "Alice's DAGs first"),
    ),
    "attributes": (Example('Software = {"cvmfs", "geant4"}', "a list that DAGs may ask for"),),
    "environment": (Example("SiteWorkingArea=/scratch", "$ENV(SiteWorkingArea) is /scratch"),),
    "rematch_expression": (
        Example("QueuedSeconds > 7200 && NodesRunning == 0", "nothing ran for two hours"),
    ),
}


def with_examples(name: str, help_text: str) -> str | SafeString:
    """Help text of a field, followed by examples where it takes an expression."""
    examples = EXAMPLES.get(name)
    if not examples:
        return help_text
    items = format_html_join(
        "; ", "<code>{}</code> ({})", ((each.text, each.meaning) for each in examples)
    )
    return format_html("{} For example: {}.", help_text, items)
