"""Form of a new trial: what is done, with which files, and how nodes behave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest

from portal.middleware.uploads import uploads
from portal.shared.dag_submissions import SubmissionParts, read_options
from portal.web.dags.run_forms import in_folder
from wms.core.errors import InvalidInput
from wms.dags.language.origin import read_origin
from wms.dags.trials.states import TrialKind

#: The most digits of a DAG's number.
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class TrialForm:
    """Parsed form: `dag_id` names the DAG whose own files are tried, None those that were sent."""

    kind: TrialKind
    behaviour: Mapping[str, Any]
    allows_missing: bool
    is_for_dagman: bool
    dag_id: int | None
    sent: SubmissionParts


def dag_id_of(text: str) -> int | None:
    """Number of a DAG from a form or an address; None for none. Raises InvalidInput."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise InvalidInput.of("must be the number of a DAG", field="of")
    return int(text)


def read_trial_form(request: HttpRequest) -> TrialForm:
    """Read the form. Raises InvalidInput with every fault."""
    form = request.POST
    kind = form.get("kind", TrialKind.CHECK)
    if kind not in TrialKind.values:
        raise InvalidInput.of("must be check or dry_run", field="kind")
    dag_id = dag_id_of(form.get("of", ""))
    dags = uploads(request, "dag")
    if dag_id is None and not dags:
        raise InvalidInput.of("Choose a DAG file.", field="DAG file")
    folder = [in_folder(upload) for upload in uploads(request, "folder")]
    return TrialForm(
        kind=TrialKind(kind),
        behaviour=_behaviour(form.get("behaviour", "")),
        allows_missing="allow_missing" in form,
        is_for_dagman="dagman" in form,
        dag_id=dag_id,
        sent=SubmissionParts(
            dags=dags,
            files=[*uploads(request, "files"), *folder],
            archives=uploads(request, "archive"),
            origin=read_origin(form.get("directory", ""), form.get("root", "")),
        ),
    )


def _behaviour(text: str) -> Mapping[str, Any]:
    try:
        return read_options(text)
    except InvalidInput as error:
        faults = [replace(each, field="behaviour") for each in error.findings]
        raise InvalidInput(faults) from None
