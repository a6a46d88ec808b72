"""Page that adds the nodes of a fragment to a DAG: typed or sent as a file, checked, inserted."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import BinaryIO

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from portal.middleware.uploads import keeps_names, uploads
from portal.web.shared.findings import SHOWN, quoted
from portal.web.shared.forms import ReasonForm
from portal.web.shared.pages import page, render_page
from wms.actions.arguments import Order
from wms.actions.dags import DAGS
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, NotFound, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.dags.growth.fragments import Fragment
from wms.dags.models import Dag
from wms.dags.policy import require_steering
from wms.dags.reading.selectors import find_dag
from wms.dags.services.growth import DEFAULT_NAME, GrowthRequest, check_growth
from wms.dags.states import DAG_TERMINAL
from wms.dags.submission.checking import MAX_TEXT_BYTES, read_text
from wms.jobs.content.paths import MAX_PATH_BYTES

_GROW = DAGS.actions["grow"]
_MOST_NAMES_LENGTH = 100 * 256


def _line(label: str, help_text: str, most: int) -> forms.CharField:
    widget = forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"})
    return forms.CharField(
        label=label, help_text=help_text, max_length=most, required=False, widget=widget
    )


class GrowthForm(ReasonForm):
    """A fragment, and the nodes that it is to stand between."""

    text = forms.CharField(
        label="Fragment",
        help_text="In the language of DAG files, with the descriptions that are in the workspace, "
        "or its own.",
        max_length=MAX_TEXT_BYTES,
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "form-control mono", "rows": 12, "spellcheck": "false"}
        ),
    )
    after = _line(
        "After the nodes",
        "Names with blanks between them. Without any it begins at once.",
        _MOST_NAMES_LENGTH,
    )
    before = _line(
        "Before the nodes",
        "These have to wait for it, and may not have begun.",
        _MOST_NAMES_LENGTH,
    )
    file = _line(
        "Name of its file", f"For faults and the copy; else {DEFAULT_NAME}.", MAX_PATH_BYTES
    )

    def asked(self, request: HttpRequest) -> GrowthRequest:
        """Fragment that is to be added. A file that was sent counts, and not what was typed.

        Raises InvalidInput with every fault.
        """
        if not self.is_valid():
            raise InvalidInput(
                [
                    Finding(message, field=str(self.fields[name].label))
                    for name, faults in self.errors.items()
                    for message in faults
                ]
            )
        given = self.cleaned_data
        text, name = given["text"].replace("\r\n", "\n"), given["file"]
        for sent in uploads(request, "fragment"):
            text, faults = read_text(sent.content, file=sent.name)
            if faults:
                raise InvalidInput(faults)
            name = name or sent.name
        return GrowthRequest(
            text,
            name or DEFAULT_NAME,
            after=given["after"].split(),
            before=given["before"].split(),
        )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of a form: the fragment if it was checked, or what was refused."""

    asked: GrowthRequest | None = None
    checked: Fragment | None = None
    error: PilotageError | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def files(self) -> dict[str, BinaryIO]:
        """The fragment by the name of its file, for lines that are quoted."""
        if self.asked is None:
            return {}
        return {self.asked.file: io.BytesIO(self.asked.text.encode())}


@keeps_names
@require_http_methods(["GET", "HEAD", "POST"])
@page
def grow(request: HttpRequest, dag_id: int) -> HttpResponse:
    """Form of a fragment; faults, and what a check found, are shown beside it."""
    dag = find_dag(request.user, dag_id)
    require_steering(Actor.person(request.user), [dag])
    if request.method != "POST":
        return _grow_page(request, dag, _Outcome())
    form, asked = GrowthForm(request.POST), None
    try:
        with heavy_place(request.user):
            asked = form.asked(request)
            if request.POST.get("do") == "check":
                checked = check_growth(dag.pk, asked, actor=Actor.person(request.user))
                return _grow_page(request, dag, _Outcome(asked, checked))
            added = _GROW.act(dag.pk, _order(request, form, asked))
    except (NotPermitted, NotFound):
        raise
    except PilotageError as error:
        findings = list(error.findings) if isinstance(error, InvalidInput) else []
        return _grow_page(request, dag, _Outcome(asked, error=error, findings=findings))
    count = len(added.spec.nodes)
    messages.success(
        request, f"{count} node{'' if count == 1 else 's'} {'is' if count == 1 else 'are'} added."
    )
    return redirect("web:dag", dag_id=dag.pk)


def _order(request: HttpRequest, form: GrowthForm, asked: GrowthRequest) -> Order:
    given = {
        "text": asked.text,
        "file": asked.file,
        "after": asked.after,
        "before": asked.before,
    }
    return Order(Actor.person(request.user), form.options()["reason"], given)


def _grow_page(request: HttpRequest, dag: Dag, outcome: _Outcome) -> HttpResponse:
    sent: QueryDict | None = request.POST if request.method == "POST" else None
    if sent is None and "after" in request.GET:
        form = GrowthForm(initial={"after": request.GET["after"]})
    else:
        form = GrowthForm(sent)
    checked = outcome.checked
    context = {
        "dag": dag,
        "form": form,
        "has_ended": dag.state in DAG_TERMINAL,
        "error": outcome.error,
        "findings": quoted(outcome.findings, outcome.files),
        "findings_total": len(outcome.findings),
        "shown": SHOWN,
        "checked": checked,
        "warnings": quoted(checked.checked.warnings, outcome.files) if checked else (),
    }
    status = outcome.error.status if outcome.error else 200
    return render_page(request, "dag_grow", context, status=status)
