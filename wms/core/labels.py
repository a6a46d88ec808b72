"""Labels of DAGs, clusters and schedules: words, also `key=value`, by which people find them.

Their check, their change by words that are added and taken away, and the label of a campaign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from wms.core.errors import Finding, InvalidInput

MAX_LABELS = 20
MAX_LABEL_LENGTH = 64
_LABEL = re.compile(f"[^\\s,\x00-\x1f\x7f\ud800-\udfff]{{1,{MAX_LABEL_LENGTH}}}\\Z")
_WORD = f"a label is a word of at most {MAX_LABEL_LENGTH} characters without blanks and commas"
_CAMPAIGN = "campaign="


def checked_labels(value: object) -> tuple[str, ...]:
    """Labels, each once, in the order in which they were given. Raises ValueError."""
    if not isinstance(value, list | tuple) or len(value) > MAX_LABELS:
        raise ValueError(f"must be a list of at most {MAX_LABELS} words")
    if not all(isinstance(each, str) and _LABEL.match(each) for each in value):
        raise ValueError(_WORD)
    return tuple(dict.fromkeys(value))


def labels_in(text: str) -> list[str]:
    """Words of a text, which commas or blanks separate; not checked yet."""
    return [word for word in re.split(r"[\s,]+", text) if word]


def check_change(add: Sequence[str], remove: Sequence[str]) -> None:
    """Raise InvalidInput unless these labels can be added, and others taken away."""
    faults = []
    for field, labels in (("add", add), ("remove", remove)):
        try:
            checked_labels(labels)
        except ValueError as error:
            faults.append(Finding(str(error), field=field))
    if not faults and not add and not remove:
        faults.append(Finding("name a label that is added or removed", field="add"))
    faults += [
        Finding(f"{label} cannot be added and removed at once", field="remove")
        for label in sorted(set(add) & set(remove))
    ]
    if faults:
        raise InvalidInput(faults)


def changed_labels(
    labels: Iterable[str], *, add: Sequence[str], remove: Collection[str]
) -> list[str]:
    """Labels after a change. Raises InvalidInput if there would be too many."""
    new = [label for label in dict.fromkeys([*labels, *add]) if label not in remove]
    if len(new) > MAX_LABELS:
        raise InvalidInput.of(f"there would be more than {MAX_LABELS} labels", field="add")
    return new


def label_of_campaign(name: str) -> str:
    """Label that puts a DAG or cluster into the campaign of this name."""
    return f"{_CAMPAIGN}{name}"


def campaigns_among(labels: Iterable[str]) -> list[str]:
    """Names of the campaigns that these labels name."""
    named = (label.removeprefix(_CAMPAIGN) for label in labels if label.startswith(_CAMPAIGN))
    return [name for name in named if name]
