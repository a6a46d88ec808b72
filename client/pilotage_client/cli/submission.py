"""Commands that send files: submit, check, simulate."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..client import Client
from ..errors import UsageError
from ..files.dag_scan import is_dag_text
from ..files.found import DagFiles, JobFiles, dag_files, job_files
from ..model import Check, Cluster, Dag, Finding
from .lists import cluster_row, lack_of
from .printing import counted, here, say, say_json, tell, upload_bar

_FAULTY = 1
_NO_VERDICT = 2


def submit(client: Client, options: Namespace) -> int:
    """Submit what the options name; its name on the command line, and where it is seen."""
    run: Any
    if _is_dag(options):
        found = _dag_files(options)
        texts = {
            "options": json.dumps(values_of(options.option)) if options.option else "",
            "labels": ",".join(options.label),
            "priority": "" if options.priority is None else str(options.priority),
            "binding": options.binding or "",
            "resume": "afresh"
            if options.afresh and not options.save_point
            else options.resume or "",
            "save_point": options.save_point or "",
        }
        with upload_bar(found.size_bytes, found.dags[0]) as progress:
            run = client.send_dag(
                found, texts, description=options.description, key=options.key, progress=progress
            )
        name, page = f"d{run.id}", f"dags/{run.id}/"
    else:
        text, files = _jobs(options)
        _tell_notices(files.notices)
        size = sum(path.stat().st_size for path in files.files.values())
        with upload_bar(size, "files") as progress:
            run = client.submit_jobs(
                text, files, options=_job_options(options), key=options.key, progress=progress
            )
        name, page = f"c{run.id}", f"clusters/{run.id}/"
    _tell_findings(run.submitted.warnings, "warning", options)
    if not options.wait:
        _say_submitted(run.submitted, name, f"{client.profile.url}/{page}", options)
        return 0
    tell(f"{name} is submitted: {client.profile.url}/{page}")
    ended = run.wait()
    _say_ended(ended, name, options)
    return 0 if ended.is_well else _FAULTY


def check(client: Client, options: Namespace) -> int:
    """Faults and warnings with their places; exit code 0 without faults, 1 with some."""
    if not _is_dag(options):
        text, files = _jobs(options)
        found = client.check_jobs(text, files)
    elif options.dagman or options.allow_missing:
        return _trial(client, options, "check", _check_texts(options))
    else:
        sent = _dag_files(options)
        found = client.check_dag(sent, description=options.description)
    if options.json:
        say_json(found.raw)
    else:
        _say_check(found, options)
    return 0 if found.is_faultless else _FAULTY


def simulate(client: Client, options: Namespace) -> int:
    """Try a DAG on the portal's virtual clock; the exit code is that of its report."""
    if not _is_dag(options):
        raise UsageError("Only DAGs are simulated: name a DAG file.")
    behaviour = ""
    if options.behaviour:
        behaviour = _read(Path(options.behaviour))
    return _trial(client, options, "dry-run", {"behaviour": behaviour})


def _trial(client: Client, options: Namespace, kind: str, texts: Mapping[str, str]) -> int:
    found = _dag_files(options)
    ended = client.trial(kind, found, texts)
    if ended["state"] != "done":
        tell(f"pilotage: the trial is {ended['state']}: {ended['state_reason']}")
        return _NO_VERDICT
    if options.json:
        say_json(ended["report"])
    else:
        say(str(ended["text"]).rstrip("\n"))
    return int(ended["exit_code"])


def _check_texts(options: Namespace) -> dict[str, str]:
    given = {"allow_missing": options.allow_missing, "dagman": options.dagman}
    return {name: "true" for name, value in given.items() if value}


def _is_dag(options: Namespace) -> bool:
    if options.program:
        if options.files:
            raise UsageError("Name files, or behind -- a program, not both.")
        return False
    if not options.files:
        raise UsageError("Name DAG files or a submit file, or a program behind --.")
    if options.kind:
        return bool(options.kind == "dag")
    return is_dag_text(_read(Path(options.files[0])))


def _dag_files(options: Namespace) -> DagFiles:
    options.sent = dag_files(
        options.files,
        more=options.file,
        directory=options.directory,
        root=options.root,
        uses_dag_dir=options.usedagdir,
        is_afresh=getattr(options, "afresh", False),
    )
    _tell_notices(options.sent.notices)
    found: DagFiles = options.sent
    return found


def _jobs(options: Namespace) -> tuple[str, JobFiles]:
    """Description of jobs, and the files that it names."""
    path: Path | None = None
    if options.program:
        text = _description_of(options.program, options.queue)
        folder = Path.cwd()
    elif len(options.files) > 1:
        raise UsageError("One submit file makes a cluster: name one.")
    else:
        path = Path(options.files[0])
        text = _read(path)
        folder = Path(options.directory) if options.directory else path.parent
    found = options.sent = job_files(text, folder, options.file, file=path)
    return text, found


def _description_of(program: Sequence[str], queue: str | None) -> str:
    """Description of a program with its arguments, in submit language."""
    words = ["'" + word.replace("'", "''") + "'" if " " in word or "'" in word else word
             for word in program[1:]]  # fmt: skip
    arguments = " ".join(words).replace('"', '""')
    lines = [f"executable = {program[0]}"]
    lines += [f'arguments = "{arguments}"'] if words else []
    lines += ["output = $(Cluster).$(Process).out", "error = $(Cluster).$(Process).err"]
    return "\n".join([*lines, f"queue {queue or ''}".rstrip(), ""])


def _job_options(options: Namespace) -> dict[str, Any]:
    given = {"name": options.name, "group": options.group, "labels": options.label or None}
    values = {**values_of(options.option), **{k: v for k, v in given.items() if v is not None}}
    if options.priority is not None:
        values["priority"] = options.priority
    return values


def values_of(texts: Sequence[str]) -> dict[str, Any]:
    """Values of --option NAME=VALUE: numbers and truths as such, else texts. Raises UsageError."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"--option {text}: write it as NAME=VALUE.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text in UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _say_check(found: Check, options: Namespace) -> None:
    for fault in found.findings:
        say(str(here(fault, options)))
    for warning in (here(each, options) for each in found.warnings):
        say(
            f"{warning.place}: warning: {warning.message}"
            if warning.place
            else f"warning: {warning}"
        )
    shape = found.raw.get("statistics")
    size = counted(found.raw.get("size", 0), "job")
    if shape:
        size = f"{counted(shape['nodes'], 'node')}, {counted(shape['arcs'], 'arc')}"
    faults = counted(len(found.findings), "fault")
    say(f"{faults}, {counted(len(found.warnings), 'warning')}; {size}")


def _say_submitted(made: Dag | Cluster, name: str, page: str, options: Namespace) -> None:
    if options.json:
        say_json(made.raw)
    else:
        say(f"{name}  {page}")


def _say_ended(made: Dag | Cluster, name: str, options: Namespace) -> None:
    if options.json:
        say_json(made.raw)
    else:
        lack = lack_of(cluster_row(made)) if isinstance(made, Cluster) else ""
        why = made.state_reason or (f"{lack}; `pilotage why {name}` tells why" if lack else "")
        say(f"{name} is {made.state}" + (f": {why}" if why else ""))


def _tell_notices(notices: Sequence[str]) -> None:
    for notice in dict.fromkeys(notices):
        tell(notice)


def _tell_findings(findings: Sequence[Finding], kind: str, options: Namespace) -> None:
    for found in (here(each, options) for each in findings):
        place = f"{found.place}: " if found.place else ""
        tell(f"{place}{kind}: {found.message}")
