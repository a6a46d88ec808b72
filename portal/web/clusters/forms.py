"""Form by which jobs are submitted: one command, or a description, with options and files.

Also the reading of the sent form as a submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest

from portal.middleware.uploads import Upload, uploads
from portal.shared.job_submissions import DEFAULT_NAME, description_of, files_of, read_description
from portal.shared.named_uploads import FormFiles
from portal.web.shared.nonces import page_key
from wms.core.errors import Finding, InvalidInput
from wms.core.models import User
from wms.jobs.clusters.checking import MAX_TEXT_BYTES
from wms.jobs.clusters.options import MAX_LIMIT
from wms.jobs.clusters.submit import ClusterSubmission
from wms.jobs.services import MAX_PRIORITY

#: Fields of a job that is described by this form alone, by the members of a description in JSON.
JOB_FIELDS = (
    "executable", "arguments", "queue", "priority", "cores", "memory_mb", "sites", "outputs",
)  # fmt: skip
_LISTS = frozenset({"labels", "sites", "outputs"})
_MOST = 2**31 - 1


def _text(label: str, help_text: str = "", *, placeholder: str = "") -> forms.CharField:
    attributes = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
    if placeholder:
        attributes["placeholder"] = placeholder
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=4000,
        widget=forms.TextInput(attrs=attributes),
    )


def _number(label: str, help_text: str = "", *, least: int = 0, most: int = _MOST) -> forms.Field:
    attributes = {"class": "form-control", "inputmode": "numeric", "autocomplete": "off"}
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=least,
        max_value=most,
        widget=forms.TextInput(attrs=attributes),
    )


class JobsForm(forms.Form):
    """Form of a submission of jobs. Every field may be left empty; the service checks the rest."""

    executable = _text(
        "Command",
        "An absolute path on worker nodes, or the name of a file below.",
        placeholder="/bin/echo",
    )
    arguments = _text(
        "Arguments", "$(Process) is the number of each job, from 0.", placeholder="job $(Process)"
    )
    queue = _number("Number of jobs", least=1)
    priority = _number("Priority", f"From 0 to {MAX_PRIORITY}; usual is 1.", most=MAX_PRIORITY)
    cores = _number("Cores", least=1)
    memory_mb = _number("Memory in MB")
    sites = _text("Sites", "Where alone they may run, with commas; empty: anywhere.")
    outputs = _text("Output files", "What is kept beside standard output, with commas.")
    description = forms.CharField(
        label="Description",
        required=False,
        strip=False,
        max_length=MAX_TEXT_BYTES,
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 10, "spellcheck": "false"}
        ),
    )
    name = _text("Name")
    labels = _text("Labels", "Words to find it by, with commas.")
    group = forms.ChoiceField(
        label="Group", required=False, widget=forms.Select(attrs={"class": "form-select"})
    )
    deadline = forms.CharField(
        label="Deadline (UTC)",
        help_text="The cluster is removed then.",
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"class": "form-control", "type": "datetime-local"}),
    )
    max_idle = _number(
        "Waiting at once", "No more jobs are made while so many wait.", least=1, most=MAX_LIMIT
    )
    max_materialize = _number(
        "There at once",
        "No more jobs are made while so many have not ended.",
        least=1,
        most=MAX_LIMIT,
    )

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        names = [str(group) for group in user.accounting_groups.order_by("name")]
        self.fields["group"].choices = [("", "as usual"), *((name, name) for name in names)]

    def job_fields(self) -> list[forms.BoundField]:
        """Fields of a single command."""
        return [self[name] for name in JOB_FIELDS]

    def option_fields(self) -> list[forms.BoundField]:
        """Fields of the cluster as a whole."""
        return [self[name] for name in self.fields if name not in {*JOB_FIELDS, "description"}]

    def given(self) -> dict[str, Any]:
        """Members that were filled in. Raises InvalidInput with every fault."""
        if not self.is_valid():
            raise InvalidInput(
                [
                    Finding(message, field=name)
                    for name, faults in self.errors.items()
                    for message in faults
                ]
            )
        values = {n: v for n, v in self.cleaned_data.items() if v is not None and v != ""}
        for name in _LISTS & values.keys():
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
        if deadline := values.get("deadline"):
            # As browsers send it: without seconds and zone.
            values["deadline"] = f"{deadline}Z" if deadline[-1:].isdigit() else deadline
        return values


@dataclass(frozen=True, slots=True)
class SentJobs:
    """A form that was sent; `text` is quoted where faults name its lines."""

    submission: ClusterSubmission
    text: bytes
    is_check: bool


def read_jobs_form(request: HttpRequest, form: JobsForm, *, owner: User) -> SentJobs:
    """Submission of the form. Raises InvalidInput with every fault."""
    given, sent = form.given(), FormFiles(request, owner, ("files",)).of("files")
    described = uploads(request, "description_file")
    job = {name: given.pop(name) for name in JOB_FIELDS if name in given}
    typed = given.pop("description", "")
    upload = _only_one(described, typed, job)
    if upload is not None:
        name, text = upload.name, read_description(upload.content)
    else:
        name, text = DEFAULT_NAME, typed.replace("\r\n", "\n").encode()
    description: str | Mapping[str, Any] = job if job else description_of(text, name=name)
    key = page_key(
        request.POST.get("nonce", ""), [*sent, *described], f"{sorted(given.items())} {job} {typed}"
    )
    return SentJobs(
        ClusterSubmission(
            description=description,
            options=given,
            files=files_of(sent),
            description_name=name,
            idempotency_key=key,
        ),
        text=text,
        is_check=request.POST.get("do") == "check",
    )


def _only_one(described: list[Upload], typed: str, job: Mapping[str, Any]) -> Upload | None:
    """The uploaded description, if that is what was given. Raises InvalidInput."""
    ways = [bool(job), bool(typed.strip()), bool(described)]
    if sum(ways) > 1 or len(described) > 1:
        raise InvalidInput.of(
            "give one of a command, a text and a file; empty the others", field="description"
        )
    if not any(ways):
        raise InvalidInput.of("give a command, or a description", field="executable")
    return described[0] if described else None
