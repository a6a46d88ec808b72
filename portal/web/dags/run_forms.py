"""Forms of DAG runs: submission with options, further run from a rescue, change of limits.

Also the labels of run options, the reading of the submit form, and the faults of any form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django import forms
from django.http import HttpRequest

from portal.middleware.uploads import Upload, uploads
from portal.shared.dag_submissions import SubmissionParts
from portal.shared.named_uploads import FormFiles
from portal.web.shared.forms import ReasonForm
from portal.web.shared.nonces import page_key
from portal.web.shared.stale_forms import version_of
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import labels_in
from wms.core.models import User
from wms.dags.language.origin import read_origin
from wms.dags.language.spec import RunOptions
from wms.dags.rescue.rescue_files import Resumption, read_resumption
from wms.dags.services.dags import LIVE_OPTIONS
from wms.jobs.content.paths import MAX_PATH_BYTES
from wms.schedules.services import ScheduleTerms

_MOST = 2**31 - 1
LABELS = {
    "max_jobs": ("Nodes submitted at once", "0: no limit"),
    "max_idle": ("Idle jobs", "Nothing more is submitted while this many are idle; 0: no limit"),
    "max_pre": ("PRE scripts at once", "0: no limit"),
    "max_post": ("POST scripts at once", "0: no limit"),
    "max_hold_scripts": ("HOLD scripts at once", "0: no limit"),
    "max_job_holds": ("Holds of a node's jobs", "The node fails at this number; 0: no limit"),
    "priority": ("Priority of all nodes", "Added to the priority of each node"),
    "always_run_post": ("POST scripts run even if PRE failed", ""),
    "depth_first": ("Children run before other ready nodes", ""),
    "retry_node_first": ("Retries run before other ready nodes", ""),
    "reset_retries": ("A rescue resets all retries", ""),
    "max_rescue": ("Rescues kept", "Beyond this, the last one is overwritten; 0: none is written"),
    "data_attempts": ("Attempts of a placement", "From 1"),
    "timeout_queue_s": ("Seconds until a node's jobs start", "Without a TIMEOUT; 0: no limit"),
    "timeout_run_s": ("Seconds until a node's jobs end", "Without a TIMEOUT; 0: no limit"),
}


class RunOptionsForm(forms.Form):
    """Options of a run; a field that is left empty changes nothing."""

    def __init__(self, *args: Any, now: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, prefix="option", **kwargs)
        defaults = RunOptions()
        for each in fields(RunOptions):
            label, help_text = LABELS[each.name]
            value = (now or {}).get(each.name, getattr(defaults, each.name))
            self.fields[each.name] = _option_field(label, help_text, value)

    def options(self) -> dict[str, int | bool]:
        """Options that were filled in. Raises InvalidInput with every fault."""
        if not self.is_valid():
            raise InvalidInput(faults_of(self, {name: each[0] for name, each in LABELS.items()}))
        given = {n: value for n, value in self.cleaned_data.items() if value not in (None, "")}
        return {
            n: value == "true" if isinstance(value, str) else value for n, value in given.items()
        }


def _option_field(label: str, help_text: str, value: int | bool) -> forms.Field:
    attributes = {"autocomplete": "off"}
    if isinstance(value, bool):
        shown = [("", f"as it is: {'yes' if value else 'no'}"), ("true", "yes"), ("false", "no")]
        widget = forms.Select(attrs={"class": "form-select"})
        return forms.ChoiceField(label=label, choices=shown, required=False, widget=widget)
    attributes |= {"class": "form-control", "inputmode": "numeric", "placeholder": str(value)}
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=-_MOST - 1 if label.startswith("Priority") else 0,
        max_value=_MOST,
        widget=forms.TextInput(attrs=attributes),
    )


def faults_of(form: forms.Form, labels: Mapping[str, str] | None = None) -> list[Finding]:
    """Faults of a form, each with the label of its field."""
    return [
        Finding(message, field=(labels or {}).get(name, name))
        for name, faults in form.errors.items()
        for message in faults
    ]


class LimitsForm(ReasonForm):
    """Limits of a DAG that may change while it runs."""

    def __init__(self, *args: Any, now: RunOptions, categories: Mapping[str, int], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._now = {name: getattr(now, name) for name in LABELS if name in LIVE_OPTIONS}
        self._categories = dict(categories)
        for name, value in self._now.items():
            label, help_text = LABELS[name]
            self.fields[name] = _limit_field(label, help_text, value)
        for place, (category, limit) in enumerate(self._categories.items()):
            self.fields[f"category-{place}"] = _limit_field(
                f"Category {category}", "0: none is submitted", limit
            )
        self.fields["new_category"] = forms.CharField(
            label="A further category",
            max_length=255,
            required=False,
            widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
        )
        self.fields["new_limit"] = _limit_field("Its limit", "", None)

    @property
    def version(self) -> str:
        """Version of the limits that the form shows, against stale forms."""
        return version_of(self._now, self._categories)

    def changes(self) -> dict[str, Any]:
        """Changed limits, for the service. Raises InvalidInput with every fault."""
        if not self.is_valid():
            labels = {name: str(field.label) for name, field in self.fields.items()}
            raise InvalidInput(faults_of(self, labels))
        given = self.cleaned_data
        options = {
            name: given[name]
            for name, value in self._now.items()
            if given[name] is not None and given[name] != value
        }
        categories = {
            name: given[f"category-{place}"]
            for place, (name, limit) in enumerate(self._categories.items())
            if given[f"category-{place}"] not in (None, limit)
        }
        if given["new_category"]:
            if given["new_limit"] is None:
                raise InvalidInput.of("give its limit", field=given["new_category"])
            categories[given["new_category"]] = given["new_limit"]
        if not options and not categories:
            raise InvalidInput.of("nothing was changed")
        return {"options": options, "categories": categories, "reason": given["reason"]}

    def values(self) -> Iterable[forms.BoundField]:
        """Fields except the reason."""
        return [self[name] for name in self.fields if name != "reason"]


def _limit_field(label: str, help_text: str, value: int | None) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=False,
        initial=value,
        min_value=0,
        max_value=_MOST,
        widget=forms.TextInput(
            attrs={"class": "form-control", "inputmode": "numeric", "autocomplete": "off"}
        ),
    )


class RescueForm(ReasonForm):
    """Starting point of a further run: newest rescue, start, a rescue's number, or a save point."""

    start = forms.CharField(max_length=len("save:") + MAX_PATH_BYTES, required=False)

    def resumption(self) -> dict[str, str]:
        """Arguments of the rescue that name what was chosen."""
        return _resumption_arguments(self.data.get("start", ""))


def resumption_of(start: str) -> Resumption:
    """Starting point for the value of the form's choice. Raises InvalidInput."""
    return read_resumption(**_resumption_arguments(start))


def _resumption_arguments(start: str) -> dict[str, str]:
    if start.startswith("save:"):
        return {"resume": "", "save_point": start.removeprefix("save:")}
    return {"resume": start}


@dataclass(frozen=True, slots=True)
class SubmitForm:
    """Parsed form of the submit page."""

    sent: SubmissionParts
    is_check: bool
    #: The times at which it is to be submitted; None: now.
    terms: ScheduleTerms | None = None


def read_submit_form(request: HttpRequest, options: RunOptionsForm, *, owner: User) -> SubmitForm:
    """Read the form. Raises InvalidInput with every fault."""
    dags = uploads(request, "dag")
    if not dags:
        raise InvalidInput.of("Choose a DAG file.", field="DAG file")
    is_schedule = request.POST.get("do") == "schedule"
    sent = FormFiles(request, owner, ("files", "folder", "archive"))
    files = [*sent.of("files"), *map(in_folder, sent.of("folder"))]
    description = next(iter(uploads(request, "description")), None)
    archives = sent.of("archive")
    if len(archives) > 1:
        raise InvalidInput.of("one archive may be given", field="archive")
    given = options.options()
    start, binding = request.POST.get("start", ""), request.POST.get("binding", "")
    labels = labels_in(request.POST.get("labels", ""))
    priority = request.POST.get("priority", "").strip()
    origin = read_origin(request.POST.get("directory", ""), request.POST.get("root", ""))
    return SubmitForm(
        SubmissionParts(
            dags=dags,
            description=description,
            files=files,
            archives=archives,
            origin=origin,
            options=given,
            resumption=read_resumption(start),
            binding=binding,
            labels=labels,
            priority=priority,
            key=None
            if is_schedule
            else page_key(
                request.POST.get("nonce", ""),
                [*dags, *files, *archives, *([description] if description else [])],
                f"{sorted(given.items())} {start} {origin} {binding} {labels} {priority}",
            ),
        ),
        is_check=request.POST.get("do") == "check",
        terms=_terms(request.POST) if is_schedule else None,
    )


def _terms(given: Mapping[str, str]) -> ScheduleTerms:
    """Terms of a schedule; the service checks them. Raises InvalidInput."""
    grace = given.get("grace_min", "").strip() or "60"
    if not (grace.isascii() and grace.isdigit() and len(grace) < 7):
        raise InvalidInput.of("must be a whole number of minutes", field="grace_min")
    return ScheduleTerms(
        name=given.get("schedule_name", "").strip(),
        cron=given.get("cron", ""),
        time_zone=given.get("time_zone", "").strip() or "UTC",
        allows_overlap="allows_overlap" in given,
        grace_s=60 * int(grace),
    )


def in_folder(upload: Upload) -> Upload:
    """Uploaded file by its path inside the chosen folder."""
    _, _, inside = upload.name.partition("/")
    return Upload(inside or upload.name, upload.content)
