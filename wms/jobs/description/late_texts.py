"""Late texts: `$$(...)` and `$ENV(...)` of a description that stay until a pilot claims the job.

Only arguments, environment and names of outputs may have them; elsewhere they are faults. Gives
what the claim needs to fill them in (`wms.jobs.binding.late_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matching.descriptions.substitution import OwnAttributes, referred, refers_to_site
from wms.jobs.description.commands import FIELDS as FIELD_COMMANDS
from wms.jobs.description.job_fields import FIELDS, JobField

#: What stands in the fields that may be filled in late, until they are.
EMPTY: Mapping[str, Any] = {
    "arguments": (),
    "environment": {},
    "output_files": (),
    "stdout_name": "",
    "stderr_name": "",
}
#: The fields themselves, by their names.
LATE_FIELDS: Mapping[str, JobField] = {each.name: each for each in FIELDS if each.name in EMPTY}
_COMMANDS = frozenset(name for field in LATE_FIELDS.values() for name in field.commands)

#: Attributes of the job that an expression refers to; None if some are not known yet.
OwnAd = Callable[[str], OwnAttributes | None]


def checked_late(name: str, text: str) -> str:
    """The text of a command as it is, with its references to the site.

    Raises ValueError where its value is needed before the claim.
    """
    if name not in _COMMANDS and (name in FIELD_COMMANDS or name.startswith("+")):
        raise ValueError(
            "it is needed before a pilot claims the job, and which site that is at is not known "
            "then: $$(...) and $ENV(...) are for arguments, environment and the names of outputs"
        )
    return text


def late_part(field: JobField, texts: Mapping[str, str], own_ad: OwnAd) -> dict[str, Any] | None:
    """What a claim needs to fill in a field; None where it has no references.

    `texts` are those of its commands, `own_ad` gives the attributes that their expressions use.
    """
    if field.name not in EMPTY or not any(map(refers_to_site, texts.values())):
        return None
    expressions = [each for text in texts.values() for _, each in referred(text) if each]
    own = [used for each in expressions if (used := own_ad(each)) is not None]
    return {
        "texts": dict(texts),
        "expressions": {name: text for used in own for name, text in used.expressions.items()},
        "values": {name: value for used in own for name, value in used.values.items()},
    }


def joined(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> dict[str, Any]:
    """What a claim needs to fill in the fields of both."""
    return {name: {**(one or {}).get(name, {}), **part} for name, part in other.items()}
