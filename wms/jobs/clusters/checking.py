"""Check of a submitted cluster as a whole, before anything of it is stored: faults and warnings.

It makes all jobs of a small (eager) cluster; of a large one only samples and those of special rows
are looked at. Also reads the description of a stored one again, and gives the default name and the
identity (owner, group) of its jobs.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from matching.descriptions.macros import Flattener, MacroError
from matching.negotiation.deadline import Deadline
from wms.core.conf import conf
from wms.core.errors import Finding
from wms.core.models import User
from wms.jobs.clusters.finding_places import Places
from wms.jobs.clusters.json_description import read_json, without_rows
from wms.jobs.clusters.options import COMMANDS, NAMES, ClusterOptions, read_options
from wms.jobs.clusters.parameters.new_tables import MAX_SIZE, NewTable, make_tables
from wms.jobs.clusters.parameters.tables import Place, Tables
from wms.jobs.clusters.rendering import ClusterRenderer, Overrides
from wms.jobs.clusters.undefined_names import undefined_names
from wms.jobs.clusters.warnings import cluster_warnings
from wms.jobs.description.misspelt_commands import told
from wms.jobs.description.needs import MAX_DIFFERENT_NEEDS
from wms.jobs.description.renderer_inputs import CannotRender, Identity
from wms.jobs.description.rendering import NodeContext, Renderer
from wms.jobs.description.submit_file import SubmitFile, parse_submit_file
from wms.jobs.models import Cluster
from wms.jobs.specs import JobSpec, different_needs
from wms.taskqueues.task_queue_policy import task_queue_policy

#: Jobs that are made with the submission: of small clusters, and where that is asked for.
EAGER_SIZE = 2_000
MAX_EAGER_SIZE = 100_000
MAX_FINDINGS = 200
#: Submit descriptions are text that people write; larger ones are a mistake.
MAX_TEXT_BYTES = 1024 * 1024
#: Rows that are looked at in any case, from the first to the last.
_SAMPLES = 100


@dataclass(slots=True)
class CheckedCluster:
    """A parsed cluster. `findings` are its faults, `warnings` what looks like a mistake.

    `specs` are the jobs that are made at once, by their numbers; none if they are made later.
    """

    language: Cluster.Language
    stored_text: bytes
    options: ClusterOptions
    description: SubmitFile = field(default_factory=SubmitFile)
    tables: list[NewTable] = field(default_factory=list)
    is_eager: bool = False
    specs: list[JobSpec] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of its jobs."""
        return sum(table.table.size for table in self.tables)


def identity_of(owner_name: str, group_name: str, name: str) -> Identity:
    """Identity of the jobs of a cluster. A query."""
    return Identity(
        owner=owner_name,
        group=group_name,
        cpu_segments_s=task_queue_policy().cpu_segments_s,
        batch_name=name,
    )


def check_cluster(
    description: str | Mapping[str, Any],
    *,
    options: Mapping[str, Any],
    files: Mapping[str, BinaryIO],
    owner: User,
    cluster_id: int,
    file: str,
) -> CheckedCluster:
    """Parse and check a description in submit language or JSON; all faults are found at once.

    `files` are those that come with it, by path; `file` names the description in findings.
    """
    checked, places, rows = _parsed(description, options, owner, cluster_id, file)
    if not checked.description.is_unreadable:
        has_tables = _check_tables(checked, places, files, rows)
        _Check(checked, places, files, owner, cluster_id).check(has_tables=has_tables)
    checked.findings = list(dict.fromkeys(checked.findings))[:MAX_FINDINGS]
    checked.warnings = list(dict.fromkeys(checked.warnings))[:MAX_FINDINGS]
    return checked


def stored_description(language: str, text: bytes) -> SubmitFile:
    """The description of a stored cluster. Raises CannotRender where it can be read no more."""
    faults: list[Finding] = []
    if language == Cluster.Language.JSON:
        made = read_json(json.loads(text), is_stored=True)
        given, faults = made.text, made.findings
    else:
        given = text.decode()
    description = parse_submit_file(given, file="", most_jobs=MAX_SIZE)
    # None was there when it was accepted. To go on would make other jobs than it describes.
    for fault in (*faults, *description.findings):
        raise CannotRender(f"its description cannot be read: {fault}")
    return description


def _parsed(
    description: str | Mapping[str, Any],
    options: Mapping[str, Any],
    owner: User,
    cluster_id: int,
    file: str,
) -> tuple[CheckedCluster, Places, list[str] | None]:
    if isinstance(description, str):
        given, faults = _with_commands(description, options, cluster_id, file)
        read, found = read_options(given, owner=owner)
        faults += found
        text, rows, places, is_made = description, None, Places(file), True
        language, stored = Cluster.Language.SUBMIT, description.encode(errors="surrogateescape")
    else:
        given = {**description, **options}
        own = {name: given.pop(name) for name in list(given) if name in NAMES}
        read, faults = read_options(own, owner=owner)
        made = read_json(given)
        faults += made.findings
        text, rows, places = made.text, made.rows, Places("", made)
        is_made = not made.findings
        language = Cluster.Language.JSON
        stored = json.dumps(without_rows(given), sort_keys=True, default=str).encode()
    checked = CheckedCluster(language, stored, read, findings=faults)
    if len(stored) > MAX_TEXT_BYTES:
        message = f"the description is larger than {MAX_TEXT_BYTES} bytes"
        checked.findings.append(Finding(message, file=places.file))
    elif fault := _text_fault(text):
        checked.findings.append(Finding(fault, file=places.file))
    elif is_made:
        checked.description = parse_submit_file(text, file=places.file, most_jobs=MAX_SIZE)
        places.description = checked.description
        checked.findings += map(places.located, checked.description.findings)
        return checked, places, rows
    checked.description.is_unreadable = True
    return checked, places, rows


def _text_fault(text: str) -> str:
    if "\0" in text:
        return "the text contains a zero byte"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text"
    return ""


def _with_commands(
    text: str, options: Mapping[str, Any], cluster_id: int, file: str
) -> tuple[dict[str, Any], list[Finding]]:
    """Options, and those that the description's commands give instead; faults of these."""
    places = Places(file)
    places.description = description = parse_submit_file(text, file=file, most_jobs=MAX_SIZE)
    number = str(cluster_id)
    known = Flattener({"cluster": number, "clusterid": number, **description.commands})
    given: dict[str, str] = {}
    faults: list[Finding] = []
    for name, option in COMMANDS.items():
        if option in options or not description.commands.get(name, "").strip():
            continue
        try:
            template = known.value(name)
        except MacroError as error:
            faults.append(places.of_command(f"{name}: {error}", [name]))
            continue
        if all(isinstance(part, str) for part in template):
            given[option] = "".join(map(str, template)).strip().strip('"')
        else:
            message = f"{name}: it is one for all jobs, and no value of a job can stand in it"
            faults.append(places.of_command(message, [name]))
    return {**given, **options}, faults


def _check_tables(
    checked: CheckedCluster,
    places: Places,
    files: Mapping[str, BinaryIO],
    rows: list[str] | None,
) -> bool:
    """Add the tables and their faults; whether there are jobs that can be looked at."""
    if checked.description.findings:
        return False
    checked.tables, faults = make_tables(checked.description, files, rows)
    checked.findings += map(places.located, faults)
    if faults:
        return False
    if checked.size < 1:
        checked.findings.append(places.of_queue("the queue statements make no job"))
    elif checked.size > MAX_SIZE:
        message = f"{checked.size} jobs are asked for; a cluster has at most {MAX_SIZE}"
        checked.findings.append(places.of_queue(message))
    options = checked.options
    checked.is_eager = options.is_eager is True or (
        options.is_eager is None
        and checked.size <= min(EAGER_SIZE, options.max_idle, options.max_materialize)
    )
    if checked.is_eager and checked.size > MAX_EAGER_SIZE:
        message = f"at most {MAX_EAGER_SIZE} jobs are made at once, not {checked.size}"
        checked.findings.append(Finding(message, field="eager"))
        return False
    return 1 <= checked.size <= MAX_SIZE


class _Check:
    """Check of the jobs of a cluster: all that are made at once, or some of the others."""

    def __init__(
        self,
        checked: CheckedCluster,
        places: Places,
        files: Mapping[str, BinaryIO],
        owner: User,
        cluster_id: int,
    ) -> None:
        self._checked = checked
        self._places = places
        self._files = files
        self._owner = owner
        self._cluster_id = cluster_id
        self._tables = Tables([table.table for table in checked.tables])
        self._deadline = Deadline(time.monotonic, conf().max_check_s)

    def check(self, *, has_tables: bool) -> None:
        """Add the faults, the warnings, and the jobs that are made at once.

        Without tables only what no row changes is looked at.
        """
        checked = self._checked
        self._refuse_undefined_names()
        try:
            renderer = self._renderer()
        except CannotRender as error:
            checked.findings += map(self._fault_of, error.all)
            self._check_without_rows()
            return
        if has_tables and not checked.description.faulty:
            self._check_jobs(renderer)
        if checked.findings:
            self._check_without_rows()

    def _refuse_undefined_names(self) -> None:
        description = self._checked.description
        if description.findings:
            return
        for message, names in undefined_names(description):
            self._checked.findings.append(self._places.of_command(message, names))
            # What they leave empty is no fault of its own.
            description.faulty.update(name.lower() for name in names)

    def _renderer(self) -> ClusterRenderer:
        description, options = self._checked.description, self._checked.options
        return ClusterRenderer(
            description,
            self._identity(),
            cluster_id=self._cluster_id,
            name=options.name or default_name(description),
            overrides=Overrides(),
        )

    def _identity(self) -> Identity:
        options = self._checked.options
        group = options.group.name if options.group else ""
        return identity_of(self._owner.get_username(), group, options.name)

    def _check_without_rows(self) -> None:
        """Add the faults that a job has whatever stands in its row."""
        description = self._checked.description
        unknown = [
            replace(queue, kind="from", file="*", items=[], count="1", slice="")
            for queue in description.queues
        ]
        renderer = Renderer(replace(description, queues=unknown), self._identity(), is_late=True)
        try:
            self._check_files([*renderer.fields(NodeContext("", self._cluster_id), most=1)])
        except CannotRender as error:
            self._checked.findings += map(self._fault_of, error.all)
            self._check_files([error.fields])

    def _check_jobs(self, renderer: ClusterRenderer) -> None:
        checked = self._checked
        processes = range(checked.size) if checked.is_eager else self._sampled(renderer)
        specs = self._render(renderer, processes)
        if checked.is_eager:
            checked.specs = specs
            if len(different_needs(specs)) > MAX_DIFFERENT_NEEDS:
                # Made later, they come as others of them end.
                message = f"its jobs have more than {MAX_DIFFERENT_NEEDS} different needs"
                checked.findings.append(Finding(message, field="eager"))
        if not checked.findings:
            fields = [
                {name: getattr(spec, name) for name in ("executable", "input_files", "directory")}
                for spec in {id(spec): spec for spec in specs}.values()
            ]
            self._check_files(fields)
            checked.warnings += cluster_warnings(checked.description, specs, self._places)

    def _render(self, renderer: ClusterRenderer, processes: Sequence[int]) -> list[JobSpec]:
        specs: list[JobSpec] = []
        findings = self._checked.findings
        for place, row in self._tables.read(processes):
            try:
                specs.append(renderer.job(place, row, self._tables))
            except CannotRender as error:
                findings += [self._fault_of_row(renderer, place, each) for each in error.all]
                if renderer.is_same[place.statement] or len(findings) >= MAX_FINDINGS:
                    return specs
            if self._deadline.is_over:
                message = f"the check takes longer than {self._deadline.limit_s:g} s"
                findings.append(Finding(message, file=self._places.file))
                return specs
        return specs

    def _fault_of_row(
        self, renderer: ClusterRenderer, place: Place, error: CannotRender
    ) -> Finding:
        if renderer.is_same[place.statement]:
            return self._fault_of(error)
        table = self._checked.tables[place.statement]
        return self._places.of_row(str(error), error.names, place, table)

    def _fault_of(self, error: CannotRender) -> Finding:
        return self._places.of_command(*told(error, self._checked.description))

    def _sampled(self, renderer: ClusterRenderer) -> list[int]:
        """Numbers of the jobs that are looked at: some of all, and those of special rows."""
        found: set[int] = set()
        for statement, new in enumerate(self._checked.tables):
            table = new.table
            if renderer.is_same[statement]:
                found.add(table.first_process)
                continue
            last = table.first_process + table.size - 1
            step = max(1, table.size // _SAMPLES)
            found.update(range(table.first_process, last + 1, step), [last])
            found.update(table.first_process + row * table.jobs_per_row for row in new.special)
        return sorted(found)

    def _check_files(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Add faults about files that jobs need and that did not come, from fields of these."""
        for fields in jobs:
            inputs = fields.get("input_files", ()) if "directory" in fields else ()
            names = [("transfer_input_files", name) for name in inputs]
            executable = fields.get("executable", "")
            if executable and not executable.startswith("/"):
                names.insert(0, ("executable", executable))
            for command, name in names:
                directory = "" if command == "executable" else fields["directory"]
                path = posixpath.normpath(posixpath.join(directory, name))
                if path not in self._files:
                    message = f"{command}: the file {path} is missing"
                    found = self._places.of_command(message, [command])
                    self._checked.findings.append(found)
            if len(self._checked.findings) >= MAX_FINDINGS:
                return


def default_name(description: SubmitFile) -> str:
    """Name of a cluster that was given none: its executable's."""
    commands = description.commands
    given = commands.get("executable", "").strip()
    return posixpath.basename(given)[:255] if given and "$" not in given else "jobs"
