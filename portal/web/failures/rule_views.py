"""Pages of the rules that group failures: list, new rule, change, trial run, removal."""

from __future__ import annotations

import time

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from matching.negotiation.deadline import Deadline
from portal.web.shared.pages import page, render_page
from wms.core.actors import Actor
from wms.core.database.saving import check_row
from wms.core.errors import InvalidInput, NotPermitted, PilotageError
from wms.core.heavy import heavy_place
from wms.failures.models import FailureRule
from wms.failures.policy import may_change_rules, require_changing_rules
from wms.failures.rule_previews import Preview, find_rule, preview_rules, rules_with
from wms.failures.rules import rule_book, stored_rules
from wms.failures.services import delete_rule, save_rule

_FIELDS = ("position", "name", "pattern", "placeholder", "keeps", "note", "is_enabled")
#: A person waits for the answer.
_PREVIEW_S = 5.0


class RuleForm(forms.Form):
    """Form of a rule. The model decides what is allowed."""

    position = forms.IntegerField(min_value=0, max_value=100_000)
    name = forms.CharField(max_length=64)
    pattern = forms.CharField(max_length=400, strip=False)
    placeholder = forms.CharField(max_length=12, required=False)
    keeps = forms.BooleanField(required=False)
    note = forms.CharField(max_length=200, required=False)
    is_enabled = forms.BooleanField(required=False)
    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


@require_safe
@page
def rule_list(request: HttpRequest) -> HttpResponse:
    """All rules in their order, and the progress of regrouping."""
    context = {
        "rules": stored_rules(),
        "book": rule_book(),
        "may_change": may_change_rules(request.user),
    }
    return render_page(request, "error_rules", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_rule(request: HttpRequest) -> HttpResponse:
    """Create a rule, or try it without storing it."""
    return _edit(request, FailureRule(position=1000))


@require_http_methods(["GET", "HEAD", "POST"])
@page
def rule_page(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Change, try or remove a rule."""
    return _edit(request, find_rule(rule_id))


def _edit(request: HttpRequest, rule: FailureRule) -> HttpResponse:
    actor = Actor.person(request.user)
    if request.method != "POST":
        initial = {name: getattr(rule, name) for name in _FIELDS}
        form = RuleForm(initial={**initial, "version": rule_book().version})
        return _show(request, rule, form)
    require_changing_rules(actor)
    form = RuleForm(request.POST)
    if not form.is_valid():
        return _show(request, rule, form, status=400)
    given = dict(form.cleaned_data)
    version = given.pop("version")
    try:
        return _done(request, rule, form, given, version, actor)
    except NotPermitted:
        raise
    except InvalidInput as error:
        for finding in error.findings:
            form.add_error(finding.field if finding.field in _FIELDS else None, finding.message)
        return _show(request, rule, form, status=400)
    except PilotageError as error:
        return _show(request, rule, form, error=error, status=error.status)


def _done(
    request: HttpRequest,
    rule: FailureRule,
    form: RuleForm,
    given: dict[str, object],
    version: int,
    actor: Actor,
) -> HttpResponse:
    """Try, remove or store the rule, depending on the button."""
    action = request.POST.get("action", "preview")
    if action == "delete" and rule.pk is not None:
        delete_rule(rule.pk, version=version, actor=actor)
        messages.success(request, f"The rule {rule.name} is removed; failures are regrouped.")
        return redirect("web:error-rules")
    for name, value in given.items():
        setattr(rule, name, value)
    if action != "save":
        check_row(rule)
        return _show(request, rule, form, is_tried=True)
    if save_rule(rule, version=version, actor=actor):
        messages.success(request, f"The rule {rule.name} is stored; failures are regrouped.")
    else:
        messages.info(request, f"The rule {rule.name} is unchanged.")
    return redirect("web:error-rules")


def _preview(request: HttpRequest, rule: FailureRule) -> Preview:
    with heavy_place(request.user):
        return preview_rules(rules_with(rule), deadline=Deadline(time.monotonic, _PREVIEW_S))


def _show(
    request: HttpRequest,
    rule: FailureRule,
    form: RuleForm,
    *,
    error: PilotageError | None = None,
    is_tried: bool = False,
    status: int = 200,
) -> HttpResponse:
    context = {
        "rule": rule,
        "form": form,
        "error": error,
        "may_change": may_change_rules(request.user),
        "preview": _preview(request, rule) if is_tried else None,
    }
    return render_page(request, "error_rule", context, status=status)
