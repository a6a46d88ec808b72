"""Form of the pages Explain and What if: subject of the question, and changes to try."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django import forms

from matching.ads.ad_cost import check_cost
from matching.ads.classads import MAX_AD_BYTES, AdError, parse_expression
from wms.core.errors import Finding, InvalidInput
from wms.explain.ad_changes import WhatIfChanges

#: Subjects of a question; exactly one is given.
SUBJECTS = ("dag", "job", "task_queue", "site", "ad")
_OF_JOBS = frozenset({"job", "task_queue"})
_MAX_ID = 2**63 - 1
_MAX_CHANGES = 100
#: `Name = value`, of a queue that may be named before it.
_OFFER = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9_.-]*)\.)?([a-z_]+)\s*=(?!=)\s*(.*)\Z")
_ASSIGNMENT = re.compile(r"\+?([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(.*)\Z")


def _number(label: str) -> forms.IntegerField:
    wrong = f"Give the number of the {label}."
    return forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MAX_ID,
        error_messages={"invalid": wrong, "min_value": wrong, "max_value": wrong},
    )


def _text(longest: int) -> forms.CharField:
    return forms.CharField(
        required=False,
        max_length=longest,
        strip=False,
        error_messages={"max_length": f"At most {longest} characters."},
    )


class QuestionForm(forms.Form):
    """Form of a question; without a subject the empty form is shown."""

    dag = _number("DAG")
    job = _number("job")
    task_queue = _number("TaskQueue")
    site = forms.CharField(required=False, max_length=64)
    ad = _text(MAX_AD_BYTES)
    #: Changed attributes of the DAG, and those of the site `at`, one `Name = expression` a line.
    change = _text(MAX_AD_BYTES)
    at = forms.CharField(required=False, max_length=64)
    site_change = _text(MAX_AD_BYTES)
    #: Changed offers of queues of the site, one `name = value` or `QUEUE.name = value` a line.
    queue_change = _text(MAX_AD_BYTES)
    #: One line that takes the place of `change`: a button that tries something.
    attempt = _text(MAX_AD_BYTES)

    def clean(self) -> dict[str, object]:
        """Refuse more than one subject."""
        cleaned = super().clean()
        given = [name for name in SUBJECTS if cleaned.get(name) not in (None, "")]
        if len(given) > 1:
            self.add_error(given[1], "Ask about one thing at a time.")
        return cleaned

    @property
    def subject(self) -> str:
        """Kind of the subject; empty if none is given or it does not parse."""
        subjects = (name for name in SUBJECTS if self.cleaned_data.get(name) not in (None, ""))
        return next(subjects, "")

    @property
    def changed(self) -> str:
        """Attribute lines for the DAG: those of the pressed button, if one was."""
        return str(self.cleaned_data.get("attempt") or self.cleaned_data.get("change") or "")

    @property
    def site_changed(self) -> str:
        """Attribute lines for the site."""
        return str(self.cleaned_data.get("site_change") or "")

    @property
    def changed_site(self) -> str:
        """Name of the site whose attributes are changed."""
        about = self.cleaned_data["site"] if self.subject == "site" else self.cleaned_data["at"]
        return str(about or "").strip()

    @property
    def queue_changed(self) -> str:
        """Attribute lines for the queues of the site."""
        return str(self.cleaned_data.get("queue_change") or "")

    @property
    def is_what_if(self) -> bool:
        """True if the question has changes."""
        texts = (self.changed, self.site_changed, self.queue_changed)
        return any(text.strip() for text in texts)

    def changes(self) -> WhatIfChanges:
        """Changes of the question. Raises InvalidInput with every fault, by field and line."""
        of_jobs = self.subject in _OF_JOBS
        values, faults = (_values if of_jobs else _assignments)(self.changed, "change")
        at_site, site_faults = _assignments("" if of_jobs else self.site_changed, "site_change")
        queues, queue_faults = _offers(self.queue_changed, self.changed_site)
        faults += site_faults + queue_faults
        if (at_site or site_faults or queues or queue_faults) and not self.changed_site:
            faults.append(Finding("Name the site that these attributes are for.", field="at"))
        if len(values) + len(at_site) + sum(map(len, queues.values())) > _MAX_CHANGES:
            faults.append(Finding(f"Change at most {_MAX_CHANGES} attributes.", field="change"))
        if faults:
            raise InvalidInput(faults)
        return WhatIfChanges(
            dag={} if of_jobs else values,
            sites={self.changed_site: at_site} if at_site else {},
            needs=values if of_jobs else {},
            queues=queues,
        )


def _values(text: str, field: str) -> tuple[dict[str, str], list[Finding]]:
    """Plain values by name, and the faults."""
    found: dict[str, str] = {}
    faults: list[Finding] = []
    for number, line in _lines(text):
        assigned = _ASSIGNMENT.match(line)
        if assigned is None or assigned[1] in found:
            fault = "Write name = value." if assigned is None else f"{assigned[1]} is given twice."
            faults.append(Finding(fault, field=field, line=number))
        else:
            found[assigned[1]] = assigned[2]
    return found, faults


def _offers(text: str, site: str) -> tuple[dict[str, dict[str, str]], list[Finding]]:
    """Changed offers of queues, by `SITE` or `SITE/QUEUE`, and the faults."""
    found: dict[str, dict[str, str]] = {}
    faults: list[Finding] = []
    for number, line in _lines(text):
        assigned = _OFFER.match(line)
        if assigned is None:
            fault = "Write name = value, or QUEUE.name = value."
            faults.append(Finding(fault, field="queue_change", line=number))
            continue
        place = f"{site}/{assigned[1]}" if assigned[1] else site
        found.setdefault(place, {})[assigned[2]] = assigned[3]
    return found, faults


def _assignments(text: str, field: str) -> tuple[dict[str, str], list[Finding]]:
    """Expressions by attribute, and the faults; an empty expression removes the attribute."""
    found: dict[str, str] = {}
    faults: list[Finding] = []
    seen: set[str] = set()
    for number, line in _lines(text):
        assigned = _ASSIGNMENT.match(line)
        fault = _fault(assigned, seen)
        if fault or assigned is None:
            faults.append(Finding(fault, field=field, line=number))
            continue
        seen.add(assigned[1].lower())
        found[assigned[1]] = assigned[2]
    return found, faults


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _fault(assigned: re.Match[str] | None, seen: set[str]) -> str:
    if assigned is None:
        return "Write Name = expression."
    name, expression = assigned.groups()
    if name.lower() in seen:
        return f"{name} is given twice."
    if not expression:
        return ""
    try:
        parse_expression(expression)
        check_cost({name: expression})
    except AdError as error:
        return f"{name}: {error.message}."
    return ""
