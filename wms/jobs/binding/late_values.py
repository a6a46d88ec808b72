"""Late values: fills in `$$(...)` and `$ENV(...)` of a job from the site whose pilot claimed it.

They stand in arguments, environment and names of outputs. Made once for each attempt and stored
beside it, and set on the job again for reports and pages, so that everybody sees what really ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db.models import F

from matching.descriptions.substitution import (
    MAX_TEXT_LENGTH,
    Evaluator,
    OwnAttributes,
    expand_references,
    refers_to_environment,
)
from wms.core.errors import PilotageError
from wms.jobs.content.job_files import misplaced_file
from wms.jobs.description.late_texts import LATE_FIELDS
from wms.jobs.description.site_environment import site_environment
from wms.jobs.description.timed_evaluation import with_time_limit
from wms.jobs.models import Attempt, Filling, Job, SiteScope
from wms.sites.ads import match_attributes_at

#: What `$ENV(NAME)` means for jobs without a DAG: the environment that the site advertises.
PLAIN_ENVIRONMENT = "$$(SiteEnvironment:)"


class CannotFill(PilotageError):
    """A value of a job cannot be made at its site; the message names it."""


def fill(attempt: Attempt) -> None:
    """Fill in the late values of an attempt's job, for this site, and store what they are.

    Repeated, it gives the same. Raises CannotFill.
    """
    job = attempt.job
    if not is_filled_in(job):
        return
    known = Filling.objects.filter(attempt=attempt).first()
    if known is None:
        known = Filling(attempt=attempt, fields=_values(job, attempt.site_name))
        _set(job, known.fields)
        if fault := misplaced_file(job):
            raise CannotFill(fault)
        known.save(force_insert=True)
    else:
        _set(job, known.fields)


def recall(job: Job, attempt: Attempt) -> None:
    """Set on a job what was filled in for this attempt, if anything was."""
    if is_filled_in(job):
        known = Filling.objects.filter(attempt=attempt).first()
        _set(job, known.fields if known is not None else {})


def show_latest(job: Job) -> dict[str, str]:
    """Set on a job what its latest attempt was given; texts of commands that none was given yet.

    No query for a job that is bound before its claim.
    """
    if not is_filled_in(job):
        return {}
    latest = Filling.objects.filter(attempt__job=job, attempt__number=job.attempt_number).first()
    if latest is None:
        return dict((job.late or {})["texts"])
    _set(job, latest.fields)
    return {}


def recall_latest(jobs: Sequence[Job]) -> None:
    """Set on jobs what was filled in for their latest attempts. One query, if anything was."""
    late = {job.pk: job for job in jobs if is_filled_in(job)}
    if not late:
        return
    fillings = Filling.objects.filter(
        attempt__job__in=late, attempt__number=F("attempt__job__attempt_number")
    )
    for filling in fillings.select_related("attempt"):
        _set(late[filling.attempt.job_id], filling.fields)


def is_filled_in(job: Job) -> bool:
    """Whether a claim has something to fill in."""
    return bool(job.late and job.late.get("texts"))


def _set(job: Job, fields: Mapping[str, Any]) -> None:
    for name in LATE_FIELDS.keys() & fields.keys():
        setattr(job, name, fields[name])
    job.attributes = {**job.attributes, **fields.get("attributes", {})}


def _values(job: Job, site: str) -> dict[str, Any]:
    """Fields of the job at a site, and its MATCH_ attributes. Raises CannotFill."""
    late = job.late or {}
    scope = _scope_of(late)
    ad = match_attributes_at(site)
    environment, used = _environment(scope, ad, late["texts"].values())
    value_of = with_time_limit(Evaluator(*_own_ad(scope), ad))
    own = OwnAttributes(late["expressions"], late["values"])
    texts: dict[str, str] = {}
    for name, text in late["texts"].items():
        with _errors_of(name):
            expanded = expand_references(
                text,
                environment=environment,
                target=ad,
                evaluator=lambda expression: value_of(expression, own),
            )
            texts[name], used = expanded.text, {**used, **expanded.used}
    if sum(map(len, texts.values())) > MAX_TEXT_LENGTH:
        raise CannotFill(f"its texts have more than {MAX_TEXT_LENGTH} characters")
    return {**_fields(texts), "attributes": used}


def _scope_of(late: Mapping[str, Any]) -> SiteScope:
    """The scope of a job; of one without a DAG it is that of a plain one, at all sites."""
    if "scope" in late:
        return SiteScope.objects.get(pk=late["scope"])
    return SiteScope(environment_template=PLAIN_ENVIRONMENT)


def _own_ad(scope: SiteScope) -> tuple[dict[str, str], dict[str, object]]:
    return scope.own_ad.get("expressions", {}), scope.own_ad.get("values", {})


def _environment(
    scope: SiteScope, ad: Mapping[str, Any], texts: Iterable[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Environment of the DAG at the site, if anything asks for it."""
    if not any(refers_to_environment(text) for text in texts):
        return {}, {}
    expressions, values = _own_ad(scope)
    with _errors_of("environment of the DAG"):
        return site_environment(
            scope.environment_template,
            ad,
            base=scope.environment,
            expressions=expressions,
            values=values,
        )


def _fields(texts: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in LATE_FIELDS.values():
        if not texts.keys().isdisjoint(field.commands):
            with _errors_of(field.commands[0]):
                value = field.read(texts)
                fields[field.name] = list(value) if isinstance(value, tuple) else value
    return fields


@contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Turn errors of the block into CannotFill for this command."""
    try:
        yield
    except (ValueError, OverflowError, PilotageError) as error:
        raise CannotFill(f"{name}: {error}") from error
