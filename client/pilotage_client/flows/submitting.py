"""Flows that send DAGs and jobs: to submit, to check, to try, to have a run elsewhere followed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import NoAnswer, PilotageError, UsageError, decoded
from ..files.bodies import Bytes, FileContent, Form, Part, Plain, Progress, size_of, text_part
from ..files.found import DagFiles, JobFiles, dag_files
from ..model import Check, Cluster, Dag, FollowedLog
from ..wire import Flow, Pause, Request
from ..wire import path as at
from .asking import ask, get, new_key
from .uploading import large_files, upload_all

#: Parts of one form; more files of jobs are refused by the portal.
_MOST_PARTS = 490
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0


class PerhapsSubmitted(NoAnswer):
    """It was sent, and nobody knows whether it arrived; `key` makes a repetition safe."""

    code = "perhaps-submitted"

    def __init__(self, error: PilotageError, key: str) -> None:
        super().__init__(
            f"{error} It may have arrived: the same with --key {key} within 24 hours submits "
            "it once."
        )
        self.key = key


def submit_dag(
    *dags: os.PathLike[str] | str,
    files: Iterable[os.PathLike[str] | str] = (),
    description: os.PathLike[str] | str | None = None,
    directory: os.PathLike[str] | str | None = None,
    root: os.PathLike[str] | str | None = None,
    uses_dag_dir: bool = False,
    options: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    priority: int | None = None,
    binding: str = "",
    resume: str = "",
    save_point: str = "",
    key: str = "",
    progress: Progress = None,
) -> Flow[Dag]:
    """Submit DAG files as one DAG, with all files that they name and the further `files`.

    `description` is a submit file for the DAG as a whole. With the `key` of an earlier call the
    same is submitted once.
    """
    found = dag_files(
        dags, more=files, directory=directory, root=root, uses_dag_dir=uses_dag_dir,
        is_afresh=resume == "afresh",
    )  # fmt: skip
    more = {
        "options": json.dumps(options) if options else "",
        "labels": ",".join(labels),
        "priority": "" if priority is None else str(priority),
        "binding": binding,
        "resume": resume,
        "save_point": save_point,
    }
    return (yield from send_dag(found, more, description=description, key=key, progress=progress))


def send_dag(
    found: DagFiles,
    texts: Mapping[str, str],
    *,
    description: os.PathLike[str] | str | None = None,
    key: str = "",
    progress: Progress = None,
) -> Flow[Dag]:
    """Submit what was found before, with these texts of the form.

    Large files are uploaded first; what the portal has of them already is not sent again.
    """
    large = large_files(found.files)
    sent = sum(map(size_of, large.values()))
    rest_bytes = found.size_bytes - sent
    uploads = yield from upload_all(large, progress, rest_bytes=rest_bytes)
    parts = _dag_parts(found, texts, description, is_whole=True, uploads=uploads)
    raw = yield from _made("dags/", Form(parts, _after(sent, progress)), key)
    return Dag.of(raw)


def check_dag(
    found: DagFiles,
    texts: Mapping[str, str] | None = None,
    *,
    description: os.PathLike[str] | str | None = None,
) -> Flow[Check]:
    """Check of a submission; nothing is stored."""
    parts = _dag_parts(found, texts or {}, description, is_whole=False)
    answer = yield from ask(Request("POST", "dags/check/", body=Form(parts)))
    return Check.of(decoded(answer))


def submit_jobs(
    description: str,
    found: JobFiles,
    *,
    options: Mapping[str, Any] | None = None,
    key: str = "",
    progress: Progress = None,
) -> Flow[Cluster]:
    """Submit the jobs of a description in submit language, with the files that it names."""
    parts, sent = yield from _job_parts(description, found, options, progress)
    raw = yield from _made("jobs/", Form(parts, _after(sent, progress)), key)
    return Cluster.of(raw)


def check_jobs(
    description: str, found: JobFiles, *, options: Mapping[str, Any] | None = None
) -> Flow[Check]:
    """Check of a submission of jobs; nothing is stored but large files, which are uploaded."""
    parts, _ = yield from _job_parts(description, found, options)
    answer = yield from ask(Request("POST", "jobs/check/", body=Form(parts)))
    return Check.of(decoded(answer))


def trial(
    kind: str, found: DagFiles, texts: Mapping[str, str] | None = None
) -> Flow[Mapping[str, Any]]:
    """Ended trial (`check` or `dry-run`) of a DAG by the portal; nothing is submitted."""
    parts = _dag_parts(found, texts or {}, None, is_whole=False)
    answer = yield from ask(Request("POST", at("trials", kind), body=Form(parts)))
    begun: Mapping[str, Any] = decoded(answer)
    pause_s = _FIRST_PAUSE_S
    try:
        while True:
            now: Mapping[str, Any] = yield from get(at("trials", begun["id"]))
            if now["ended_at"] is not None:
                return now
            yield Pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    except BaseException:
        # Nobody waits for its report any more.
        with suppress(PilotageError):
            yield from ask(Request("POST", at("trials", begun["id"], "stop"), json={}))
        raise


def follow_dag(found: DagFiles, texts: Mapping[str, str], key: str) -> Flow[FollowedLog]:
    """Have the portal follow a DAG that an HTCondor elsewhere runs."""
    parts = _dag_parts(found, texts, None, is_whole=False)
    raw = yield from _made("dags/follow/", Form(parts), key)
    return FollowedLog.of(raw)


def followed_log(dag_id: int) -> Flow[FollowedLog]:
    """Place up to which the portal has read the log of a DAG that runs elsewhere."""
    return FollowedLog.of((yield from get(at("dags", dag_id, "followed-log"))))


def send_log(dag_id: int, offset: int, piece: bytes) -> Flow[FollowedLog]:
    """Send a piece of the log from its byte `offset` on; what is known already is passed over."""
    body = Plain(piece, "application/octet-stream")
    request = Request(
        "POST", at("dags", dag_id, "followed-log"), (("offset", str(offset)),), body=body,
        is_idempotent=True,
    )  # fmt: skip
    return FollowedLog.of(decoded((yield from ask(request))))


def _made(path: str, form: Form, key: str) -> Flow[Any]:
    """The decoded answer to what makes something.

    Raises PerhapsSubmitted with its key, and NoAnswer where nothing can have arrived.
    """
    key = key or new_key()
    try:
        answer = yield from ask(Request("POST", path, body=form, key=key))
    except NoAnswer as error:
        if not error.is_sent:
            raise NoAnswer(f"{error} Nothing was submitted.", is_sent=False) from error
        raise PerhapsSubmitted(error, key) from error
    return decoded(answer)


def _dag_parts(
    found: DagFiles,
    texts: Mapping[str, str],
    description: os.PathLike[str] | str | None,
    *,
    is_whole: bool,
    uploads: Mapping[str, int] = MappingProxyType({}),
) -> list[Part]:
    given = {"directory": found.directory, "root": found.root, **texts}
    given["use_dag_dir"] = "true" if found.uses_dag_dir else ""
    parts = [text_part("dag", name) for name in found.dags]
    parts += [text_part(name, text) for name, text in given.items() if text]
    if description is not None:
        parts.append(_description_part(Path(description), found))
    parts += _uploads_part(uploads)
    if len(uploads) == len(found.files):
        return parts
    archive = found.archive(is_whole=is_whole, without=uploads)
    return [*parts, Part("archive", archive, "files.tar")]


def _uploads_part(uploads: Mapping[str, int]) -> list[Part]:
    return [text_part("uploads", json.dumps(uploads))] if uploads else []


def _after(before: int, progress: Progress) -> Progress:
    """Progress of what is sent behind so many bytes."""
    if progress is None or not before:
        return progress
    tell = progress
    return lambda sent, total: tell(before + sent, before + total)


def _description_part(path: Path, found: DagFiles) -> Part:
    # A file of the same name may be sent as one of the nodes' descriptions.
    taken = path.name in found.files and found.files[path.name].resolve() != path.resolve()
    name = f"whole-dag-{path.name}" if taken else path.name
    return Part("description", FileContent(path), name)


def _job_parts(
    description: str,
    found: JobFiles,
    options: Mapping[str, Any] | None,
    progress: Progress = None,
) -> Flow[tuple[list[Part], int]]:
    """Parts of a form, and the bytes of files that were uploaded before it."""
    large = large_files(found.files)
    together = {name: path for name, path in found.files.items() if name not in large}
    if len(together) > _MOST_PARTS:
        raise UsageError(
            f"The jobs name {len(together)} files, and at most {_MOST_PARTS} are sent with a "
            "cluster: a DAG can have 10,000."
        )
    rest_bytes = sum(map(size_of, together.values()))
    uploads = yield from upload_all(large, progress, rest_bytes=rest_bytes)
    parts = [Part("description", Bytes(description.encode()), found.name)]
    parts += [text_part("options", json.dumps(options))] if options else []
    parts += _uploads_part(uploads)
    parts += [Part("file", FileContent(path), name) for name, path in together.items()]
    return parts, sum(map(size_of, large.values()))
