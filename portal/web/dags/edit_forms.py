"""Form of an edited copy of a DAG: its texts, where it begins, and the options of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote, unquote

from django.http import HttpRequest, QueryDict

from portal.middleware.uploads import uploads
from portal.web.dags.run_forms import RunOptionsForm, resumption_of
from portal.web.shared.nonces import page_key
from portal.web.shared.stale_forms import FIELD
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import labels_in
from wms.dags.priorities import checked_priority
from wms.dags.reading.run_selectors import ResumePoint
from wms.dags.resubmission.services import Edit
from wms.dags.resubmission.texts import EditSource, Text, plain_lines
from wms.jobs.content.paths import checked_path

#: What stands before the path of a text in the name of its field.
TEXT = "text:"
_MOST_ROWS, _LEAST_ROWS = 28, 4
_WITHOUT_MEANING = frozenset({"csrfmiddlewaretoken", "nonce", "do", FIELD})


@dataclass(frozen=True, slots=True)
class TextField:
    """A text as the page shows it: what was typed, or what is in the file."""

    text: Text
    value: str

    @property
    def name(self) -> str:
        """Name of the field."""
        return field_name(self.text.path)

    @property
    def is_changed(self) -> bool:
        """Whether something else was typed."""
        return self.text.changed(self.value) is not None

    @property
    def rows(self) -> int:
        """Height of the field, in lines."""
        return max(_LEAST_ROWS, min(self.value.count("\n") + 2, _MOST_ROWS))


def field_name(path: str) -> str:
    """Name of the field of a text, in signs that browsers send as they are."""
    return f"{TEXT}{quote(path)}"


@dataclass(frozen=True, slots=True)
class Values:
    """Values of the other fields: what was chosen, or what the DAG has."""

    start: str
    keeps_done: bool
    with_outputs: bool
    binding: str
    labels: str
    priority: str
    reason: str

    @classmethod
    def of(
        cls, sent: QueryDict | None, source: EditSource, starts: Sequence[ResumePoint]
    ) -> Values:
        """Values of a form that was sent, or those that the DAG has."""
        if sent is not None:
            ticks = {name: name in sent for name in ("keeps_done", "with_outputs")}
            texts = {
                each.name: sent.get(each.name, "") for each in fields(cls) if each.name not in ticks
            }
            return cls(**texts, **ticks)  # type: ignore[arg-type]
        beside = source.beside
        newest = any(start.is_newest for start in starts)
        return cls(
            start="newest" if newest else "afresh",
            keeps_done=False,
            with_outputs=False,
            binding=beside.binding,
            labels=", ".join(beside.labels),
            priority="" if beside.priority is None else str(beside.priority),
            reason="",
        )


def text_fields(source: EditSource, sent: QueryDict | None) -> list[TextField]:
    """Fields of the texts, with what was typed."""
    given = sent if sent is not None else QueryDict()
    return [
        TextField(text, plain_lines(given.get(field_name(path), text.text)))
        for path, text in source.texts.items()
    ]


def read_edit(request: HttpRequest, options: RunOptionsForm) -> Edit:
    """Edit that was sent. Raises InvalidInput with every fault."""
    form = request.POST
    sent = [each for each in uploads(request, "files") if each.name]
    priority, findings = _priority(form.get("priority", "").strip())
    for upload in sent:
        try:
            checked_path(upload.name, field="files")
        except InvalidInput as error:
            findings += error.findings
    if findings:
        raise InvalidInput(findings)
    how = sorted((name, form.getlist(name)) for name in form if name not in _WITHOUT_MEANING)
    return Edit(
        texts={
            unquote(name.removeprefix(TEXT)): form[name] for name in form if name.startswith(TEXT)
        },
        files={upload.name: upload.content for upload in sent},
        resumption=resumption_of(form.get("start", "") or "afresh"),
        keeps_done="keeps_done" in form,
        with_outputs="with_outputs" in form,
        options=options.options(),
        binding=form.get("binding", ""),
        labels=tuple(labels_in(form.get("labels", ""))),
        priority=priority,
        reason=form.get("reason", "").strip(),
        idempotency_key=page_key(form.get("nonce", ""), sent, repr(how)),
    )


def _priority(text: str) -> tuple[int | None, list[Finding]]:
    try:
        return (checked_priority(text) if text else None), []
    except ValueError as error:
        return None, [Finding(str(error), field="priority")]


def seen_values(source: EditSource, starts: Sequence[ResumePoint]) -> tuple[Any, ...]:
    """Values that the form was made from: it is stale when they are others."""
    texts = [(text.path, text.sha256) for text in source.texts.values()]
    return source.dag.state, texts, [(start.value, start.path) for start in starts]
