"""The forms of pages. They check shape only; what is allowed is decided by the services."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.dags.checking import MAX_TEXT_BYTES, read_text
from wms.dags.services import MAX_AVOID_S
from wms.dags.submission import DagSubmission
from wms.sites.downtimes import MAX_LEAD_TIME

_NO_TIME = "Give a time such as 2026-11-20 17:30."


class ReasonForm(forms.Form):
    """Why something is done; recorded with the change."""

    reason = forms.CharField(
        max_length=2000,
        required=False,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 2, "class": "form-control"}),
    )

    def options(self) -> dict[str, Any]:
        """What the service is asked for. A text that is too long counts as none."""
        return {"reason": self.cleaned_data["reason"] if self.is_valid() else ""}


class RematchForm(ReasonForm):
    """Why and how DAGs leave their sites."""

    lets_finish = forms.BooleanField(required=False)
    avoid_min = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_AVOID_S // 60,
        error_messages={
            "invalid": "Give a whole number of minutes.",
            "min_value": "A time cannot be negative.",
            "max_value": f"At most {MAX_AVOID_S // 60} minutes.",
        },
    )

    def options(self) -> dict[str, Any]:
        """What the service is asked for. Raises InvalidInput for a time that is none."""
        if not self.is_valid() and "avoid_min" in self.errors:
            fault = self.errors["avoid_min"][0]
            raise InvalidInput([Finding(fault, field="Avoid the site")])
        minutes = self.cleaned_data["avoid_min"]
        return {
            **super().options(),
            "lets_finish": self.cleaned_data["lets_finish"],
            "avoid_s": None if minutes is None else minutes * 60,
        }


class DowntimeForm(ReasonForm):
    """When a site gets nothing new, and why; times are in UTC."""

    start = forms.DateTimeField(error_messages={"required": "Give the start.", "invalid": _NO_TIME})
    end = forms.DateTimeField(error_messages={"required": "Give the end.", "invalid": _NO_TIME})
    lead_min = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=int(MAX_LEAD_TIME.total_seconds()) // 60,
        error_messages={
            "invalid": "Give a whole number of minutes.",
            "min_value": "A time cannot be negative.",
            "max_value": f"At most {MAX_LEAD_TIME.days} days, in minutes.",
        },
    )

    def options(self) -> dict[str, Any]:
        """What the service is asked for. Raises InvalidInput with every fault, by field."""
        if not self.is_valid():
            raise InvalidInput(
                [Finding(text, field=name) for name, texts in self.errors.items() for text in texts]
            )
        return {
            "start": self.cleaned_data["start"],
            "end": self.cleaned_data["end"],
            "lead_time_s": 60 * (self.cleaned_data["lead_min"] or 0),
            "reason": self.cleaned_data["reason"],
        }


class ManyFilesInput(forms.ClearableFileInput):
    """A field for any number of files."""

    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """Any number of files, as a list."""

    widget = ManyFilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        """Return the files that were sent."""
        return [super(ManyFilesField, self).clean(file, initial) for file in data or []]


def _attributes(described_by: str) -> dict[str, str]:
    return {"class": "form-control", "aria-describedby": described_by}


class SubmitForm(forms.Form):
    """A DAG file, the files that it names, and, if wanted, a description of the DAG as a whole."""

    dag = forms.FileField(
        label="DAG file",
        widget=forms.FileInput(attrs=_attributes("help-dag") | {"accept": ".dag,text/plain"}),
        error_messages={"required": "Choose a DAG file."},
        allow_empty_file=True,
    )
    files = ManyFilesField(
        label="All files that it names",
        required=False,
        widget=ManyFilesInput(attrs=_attributes("help-files")),
        allow_empty_file=True,
    )
    description = forms.FileField(
        label="Description of the DAG as a whole",
        required=False,
        widget=forms.FileInput(attrs=_attributes("help-description")),
        allow_empty_file=True,
    )
    nonce = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    @staticmethod
    def fresh_nonce() -> str:
        """A value that makes a repeated sending of one form recognisable."""
        return secrets.token_urlsafe(16)

    def submission(self) -> DagSubmission:
        """What is to be submitted. Raises InvalidInput with every fault of the files."""
        dag, description = self.cleaned_data["dag"], self.cleaned_data["description"]
        files = self.cleaned_data["files"]
        findings = _repeated_names([dag, *files, *([description] if description else [])])
        dag_text, fault = read_text(dag, limit_bytes=conf().max_dag_text_bytes)
        findings += [Finding(fault, file=dag.name)] if fault else []
        description_text = ""
        if description:
            description_text, fault = read_text(description, limit_bytes=MAX_TEXT_BYTES)
            findings += [Finding(fault, file=description.name)] if fault else []
        if findings:
            raise InvalidInput(findings)
        return DagSubmission(
            dag_name=dag.name,
            dag_text=dag_text,
            files={file.name: file for file in files},
            description_text=description_text,
            description_name=description.name if description else "",
            idempotency_key=self._idempotency_key([dag, *files, description]),
        )

    def _idempotency_key(self, uploads: list[UploadedFile | None]) -> str | None:
        """The same for a second click, another one for files that were mended meanwhile."""
        nonce = self.cleaned_data["nonce"]
        if not nonce:
            return None
        digest = hashlib.sha256(nonce.encode())
        for upload in filter(None, uploads):
            digest.update(f"\0{upload.name}\0{upload.size}\0".encode())
            upload.seek(0)
            for chunk in upload.chunks():
                digest.update(chunk)
            upload.seek(0)
        return f"page:{digest.hexdigest()}"


def _repeated_names(uploads: list[UploadedFile]) -> list[Finding]:
    counts = Counter(upload.name for upload in uploads)
    return [
        Finding("two files have this name", file=name)
        for name, count in counts.items()
        if count > 1
    ]
