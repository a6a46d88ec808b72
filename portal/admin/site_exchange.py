"""Admin pages that export and import sites as YAML; an import is previewed, then confirmed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, PilotageError
from wms.core.heavy import heavy_place
from wms.exchange import site_import, yaml_writer
from wms.exchange.site_import import ImportPlan, PlanChanged
from wms.exchange.yaml_reader import MAX_BYTES


class DocumentForm(forms.Form):
    """The document, as text or as a file; a file wins."""

    file = forms.FileField(required=False, label="A file", widget=forms.FileInput)
    text = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_BYTES,
        label="Or its text",
        widget=forms.Textarea(attrs={"rows": 24, "cols": 100, "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        """Read the file. Refuse what is too large, no text, or not there."""
        values: dict[str, Any] = super().clean() or {}
        file = values.get("file")
        if file is not None:
            values["text"] = self._text_of(file)
        elif not values.get("text", "").strip() and "text" not in self.errors:
            self.add_error("text", "Choose a file, or paste the document here.")
        return values

    def _text_of(self, file: Any) -> str:
        content: bytes = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            self.add_error("file", f"is larger than {MAX_BYTES} bytes")
            return ""
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            self.add_error("file", f"line {line}: is not UTF-8")
            return ""


class ConfirmForm(forms.Form):
    """Document that was previewed, the token of its preview, and the reason."""

    text = forms.CharField(strip=False, max_length=MAX_BYTES, widget=forms.HiddenInput)
    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text="It stands in the history of every site that is changed.",
    )


def export_sites(request: HttpRequest) -> HttpResponse:
    """The user's sites as a file, or those that are named."""
    text = yaml_writer.export_sites(Actor.person(request.user), request.GET.getlist("site"))
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    name = f"sites-{timezone.now():%Y%m%d-%H%M}.yaml"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def import_sites(model_admin: ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Ask for a document, show what it would do, and do that when it is confirmed."""
    if request.method != "POST":
        return _page(model_admin, request, form=DocumentForm())
    if "confirm" in request.POST:
        return _confirmed(model_admin, request)
    form = DocumentForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(model_admin, request, form=form, status=400)
    return _previewed(model_admin, request, form)


def _previewed(model_admin: ModelAdmin, request: HttpRequest, form: DocumentForm) -> HttpResponse:
    text = form.cleaned_data["text"]
    try:
        with heavy_place(request.user):
            plan = site_import.preview_import(text, actor=Actor.person(request.user))
    except PilotageError as error:
        shown = DocumentForm(initial={"text": text})
        return _page(model_admin, request, form=shown, error=error, status=error.status)
    return _page(model_admin, request, form=form, text=text, plan=plan)


def _confirmed(model_admin: ModelAdmin, request: HttpRequest) -> HttpResponse:
    form = ConfirmForm(request.POST)
    if not form.is_valid():
        shown = DocumentForm(initial={"text": form.data.get("text", "").replace("\r\n", "\n")})
        return _page(model_admin, request, form=shown, error=_faults(form), status=400)
    # Browsers send the line ends of Windows.
    text = form.cleaned_data["text"].replace("\r\n", "\n")
    try:
        with heavy_place(request.user):
            plan = site_import.import_sites(
                text,
                token=form.cleaned_data["token"],
                actor=Actor.person(request.user),
                reason=form.cleaned_data["reason"],
            )
    except PlanChanged as error:
        options = {"text": text, "plan": error.plan, "error": error, "status": error.status}
        return _page(model_admin, request, form=DocumentForm(), **options)
    except PilotageError as error:
        shown = DocumentForm(initial={"text": text})
        return _page(model_admin, request, form=shown, error=error, status=error.status)
    counts = plan.counts
    messages.success(
        request,
        f"Imported: {counts['created']} created, {counts['changed']} changed, "
        f"{counts['unchanged']} as they were.",
    )
    return redirect("admin:sites_site_changelist")


def _faults(form: forms.Form) -> InvalidInput:
    return InvalidInput(
        [
            Finding(f"{form.fields[name].label or name}: {text}", field=name)
            for name, texts in form.errors.items()
            for text in texts
        ]
    )


def _page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    *,
    form: DocumentForm,
    text: str = "",
    plan: ImportPlan | None = None,
    error: PilotageError | None = None,
    status: int = 200,
) -> HttpResponse:
    confirm = None
    if plan is not None:
        # A hidden field holds no carriage return of its own: the form sends it as a line end.
        confirm = ConfirmForm(initial={"text": text.replace("\r\n", "\n"), "token": plan.token})
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Import sites",
        "opts": model_admin.opts,
        "form": form,
        "confirm": confirm,
        "plan": plan,
        "error": error,
        "findings": error.findings if isinstance(error, InvalidInput) else (),
    }
    return TemplateResponse(request, "admin/sites/site/import.html", context, status=status)
