"""Services of edited copies of DAGs: check one, and submit it as a new DAG.

The copy is a submission like any other, by whoever makes it: with a workspace of its own and the
limits of submissions, and stored as a whole or not at all. It remembers the DAG that it was made
from as its previous run. It begins from a rescue of that or afresh. Of nodes that are done in the
rescue, those whose definition the edit changes run again with all that follows them, unless it is
said that they stay done.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO

from matching.negotiation.deadline import Deadline
from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput, ReasonRequired
from wms.core.known_contents import KnownContent
from wms.core.models import Role, User
from wms.core.policy import require_role
from wms.dags.language.spec import RunOptions
from wms.dags.models import Dag
from wms.dags.rescue.names import rescue_path
from wms.dags.rescue.rescue_files import ResumePoint, Resumption
from wms.dags.resubmission.changes import Effect, effect_of
from wms.dags.resubmission.progress import refuse_lost_growth, rescue_without, starting_point
from wms.dags.resubmission.texts import EditSource, StoredFile, unknown_texts
from wms.dags.resubmission.versions import Version, read_version
from wms.dags.submission.checking import CheckedDag, read_text, request_deadline
from wms.dags.submission.runs import check_options, site_options
from wms.dags.submission.submit import (
    DagSubmission,
    MadeFrom,
    SubmittedDag,
    check_submission,
    submit_dag_once,
)
from wms.jobs.content.blobs import blob_content

#: Names in events and in the audit trail; the check tells all.
_TOLD = 50
AFRESH = Resumption(is_fresh=True)


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a DAG: texts as they were typed, by path, and what else the new DAG has.

    `files` are further ones, or replace those of their names. With `keeps_done` nodes stay done
    whose definition the edit changes. `with_outputs`: files that jobs sent back come along where
    all nodes run again; from a rescue they always do.
    """

    texts: Mapping[str, str]
    files: Mapping[str, BinaryIO] = field(default_factory=dict)
    resumption: Resumption = AFRESH
    keeps_done: bool = False
    with_outputs: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    binding: str = ""
    labels: tuple[str, ...] = ()
    priority: int | None = None
    reason: str = ""
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedEdit:
    """The submission that an edit makes, not checked yet, and where the new DAG begins.

    `edited` are the paths of changed and further files, `begins_with` that of the rescue. `effect`
    is that on the nodes that are done there; `keeps_done`: these stay done nevertheless.
    `lost_inner` is the number of rescues of DAGs inside, which are to begin anew.
    """

    submission: DagSubmission
    edited: tuple[str, ...] = ()
    begins_with: str = ""
    effect: Effect = field(default_factory=Effect)
    keeps_done: bool = False
    done_total: int = 0
    lost_inner: int = 0

    @property
    def again(self) -> tuple[str, ...]:
        """Names of the nodes that are done and run again."""
        return () if self.keeps_done else (*self.effect.changed, *self.effect.following)

    @property
    def begins_done(self) -> int:
        """Number of nodes that are done when the new DAG begins."""
        return self.done_total - len(self.again) - len(self.effect.gone)

    @property
    def facts(self) -> dict[str, Any]:
        """What events and the audit trail tell of it."""
        facts: dict[str, Any] = {"edited": list(self.edited[:_TOLD])}
        if self.begins_with:
            facts["begins_with"] = self.begins_with
        if self.again:
            facts["runs_again"] = _told(self.again)
        elif self.effect.changed:
            facts["stays_done"] = _told(self.effect.changed)
        return facts


def _told(names: tuple[str, ...]) -> dict[str, Any]:
    return {"count": len(names), "nodes": list(names[:_TOLD])}


def changed_files(source: EditSource, edit: Edit) -> dict[str, bytes]:
    """Contents of the texts that the edit changes, by path. Raises InvalidInput."""
    if faults := unknown_texts(source, list(edit.texts)):
        raise InvalidInput(faults)
    changed = {}
    for path, typed in edit.texts.items():
        content = source.texts[path].changed(typed)
        if content is not None:
            changed[path] = content
    return changed


def check_edit(source: EditSource, edit: Edit, *, owner: User) -> tuple[PreparedEdit, CheckedDag]:
    """Check an edit as a submission of this owner; nothing is stored.

    Raises InvalidInput for faults of the request itself, and of where it is to begin.
    """
    prepared = _prepared(source, edit)
    return prepared, check_submission(prepared.submission, owner=owner)


def resubmit_dag(
    source: EditSource, edit: Edit, *, owner: User, actor: Actor
) -> tuple[SubmittedDag, PreparedEdit]:
    """Check an edit, and submit it as a new DAG of this owner, which waits for a site.

    The same idempotency key and content give the DAG that was made first. Raises NotPermitted,
    ReasonRequired, QuotaExceeded, Conflict, and InvalidInput with every fault; then nothing is
    stored.
    """
    require_role(actor, Role.USER, "submit DAGs")
    if not edit.reason.strip():
        raise ReasonRequired("edit and resubmit")
    prepared = _prepared(source, edit)
    return submit_dag_once(prepared.submission, owner=owner, actor=actor), prepared


def _prepared(source: EditSource, edit: Edit) -> PreparedEdit:
    changed = changed_files(source, edit)
    point = starting_point(source.dag, edit.resumption)
    touched = {*changed, *edit.files} - {*source.dag.dag_files, source.description_name}
    keeps_inner = point is not None and (edit.keeps_done or not touched)
    with_outputs = point is not None or edit.with_outputs
    files: dict[str, BinaryIO] = {
        **{
            path: _content_of(file)
            for path, file in source.stored.items()
            if _comes_along(source, file, with_outputs=with_outputs, keeps_inner=keeps_inner)
        },
        **{path: io.BytesIO(content) for path, content in changed.items()},
        **edit.files,
    }
    stored = {path: _content_of(file) for path, file in source.stored.items()}
    old = _version(source, stored)
    prepared = PreparedEdit(
        _submission(source, edit, files, old),
        edited=tuple(sorted({*changed, *edit.files})),
        keeps_done=edit.keeps_done,
    )
    if point is not None:
        lost_inner = 0 if keeps_inner else len(source.inner_rescues)
        prepared = replace(prepared, lost_inner=lost_inner)
        prepared = _with_progress(source, prepared, point, old, touched)
    made_from = MadeFrom(source.dag, edit.reason, prepared.facts)
    # Its time begins now: the files of both versions were read before.
    submission = replace(prepared.submission, made_from=made_from, deadline=_deadline(source))
    return replace(prepared, submission=submission)


def _comes_along(
    source: EditSource, file: StoredFile, *, with_outputs: bool, keeps_inner: bool
) -> bool:
    """Whether a file goes into the new workspace as it is."""
    if file.path in source.progress:
        return keeps_inner and file.path in source.inner_rescues
    return with_outputs or not file.is_output


def _content_of(file: StoredFile) -> KnownContent:
    # Whether the store has it is not asked: of thousands of files that would take minutes.
    content = blob_content(file.sha256)
    return KnownContent(content, size_bytes=file.size_bytes, sha256=file.sha256)


def _version(source: EditSource, files: Mapping[str, BinaryIO]) -> Version:
    dag = source.dag
    return read_version(dag.dag_files, files, origin=dag.origin, deadline=_deadline(source))


def _deadline(source: EditSource) -> Deadline:
    most = conf().max_dag_text_bytes
    sizes = (each.size_bytes for each in source.stored.values() if not each.is_output)
    return request_deadline(sum(size_bytes for size_bytes in sizes if size_bytes <= most))


def _submission(
    source: EditSource, edit: Edit, files: dict[str, BinaryIO], old: Version
) -> DagSubmission:
    """Submission of these files. Raises InvalidInput where a DAG file is not among them."""
    dag, name = source.dag, source.description_name
    missing = [each for each in dag.dag_files if each not in files]
    if missing:
        raise InvalidInput([Finding("the DAG file is missing", file=each) for each in missing])
    first, *more = dag.dag_files
    # What is no file yet, and was not changed, goes on as one.
    known = source.texts[name].text if name in source.texts else ""
    description, _ = read_text(files.pop(name, io.BytesIO(known.encode())), file=name)
    stream = files.pop(first)
    # One that is too large is refused when it is checked.
    content = stream.read(conf().max_dag_text_bytes + 1)
    return DagSubmission(
        dag_name=first,
        dag_text=content.decode(errors="surrogateescape"),
        files=files,
        description_text=description if description.strip() else "",
        description_name=name if description.strip() else "",
        idempotency_key=edit.idempotency_key,
        more_dags=tuple(more),
        origin=dag.origin,
        options={**_given_options(dag, old), **check_options(edit.options)},
        binding=edit.binding,
        labels=edit.labels,
        priority=edit.priority,
    )


def _given_options(dag: Dag, old: Version) -> dict[str, int | bool]:
    """Options of a run that come neither from settings nor from CONFIG files."""
    usual = {**asdict(RunOptions()), **site_options(), **old.dag.options}
    return {name: value for name, value in dag.options.items() if value != usual.get(name)}


def _with_progress(
    source: EditSource, edit: PreparedEdit, point: ResumePoint, old: Version, touched: set[str]
) -> PreparedEdit:
    """The edit with the rescue that the new DAG begins from. Raises InvalidInput."""
    text, new = point.text, _version(source, edit.submission.all_files)
    done = {*text.done, *text.failed}
    effect = effect_of(old, new, edited=touched, done=done)
    lost = {*done, *text.retries, *text.outcomes} - new.dag.nodes.keys()
    if text.growth:
        # Nodes that it grew by are in none of the files.
        effect, lost = replace(effect, gone=()), set()
    if not edit.keeps_done:
        refuse_lost_growth(point, effect, touched)
    edit = replace(edit, effect=effect, begins_with=point.path, done_total=len(done))
    kept = rescue_without(source.dag, point, {*edit.again, *lost})
    path = rescue_path(source.dag.dag_files, point.number or 1)
    files = {**edit.submission.files, path: io.BytesIO(kept)}
    return replace(edit, submission=replace(edit.submission, files=files))
