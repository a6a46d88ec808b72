"""Fixtures of tests of scripts: settings, fences that work here, a slot, runs, workspace files."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from wms.core.models import User
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.scripts import script_service
from wms.dags.scripts.conf import ScriptConf, script_conf
from wms.dags.scripts.fence_choice import NoFence, fence_for
from wms.dags.scripts.fences import Sandbox
from wms.dags.scripts.slots import Slot, acquired_slot
from wms.dags.scripts.trees import remove_tree
from wms.jobs.content.blobs import open_blob, store_bytes
from wms.jobs.models import WorkspaceFile
from wms.jobs.operations import create_workspace

_numbers = itertools.count()

Ask = Callable[..., ScriptRun]


def first_uid() -> int:
    """First account of this test process: a slot ends all processes of its account."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return int(django_settings.PILOTAGE["SCRIPTS"]["FIRST_UID"]) + 1000 * (1 + int(worker))


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder that other accounts can enter, as those of scripts are."""
    path = Path(tempfile.mkdtemp(prefix="pilotage-scripts-", dir="/var/tmp"))
    path.chmod(0o711)
    yield path
    remove_tree(path)


@pytest.fixture
def configure(
    settings: Any, folder: Path, tmp_path: Path, fence_programs: None
) -> Callable[..., ScriptConf]:
    """Function that changes the service's settings, with small limits and the fences' programs."""

    def set_them(**values: Any) -> ScriptConf:
        small = {"WALL_S": 30, "CPU_S": 20, "MEMORY_MB": 512, "FILE_BYTES": 2**20}
        small |= {"NEW_BYTES": 2**20, "NEW_FILES": 20, "WORKSPACE_BYTES": 2**24}
        place = {"DIR": str(folder / "base"), "VAR": str(tmp_path), "FIRST_UID": first_uid()}
        scripts = django_settings.PILOTAGE["SCRIPTS"] | small | place | values
        settings.PILOTAGE = settings.PILOTAGE | {"SCRIPTS": scripts}
        return script_conf()

    set_them()
    return set_them


@pytest.fixture
def slot(configure: Callable[..., ScriptConf]) -> Iterator[Slot]:
    conf = script_conf()
    with acquired_slot(conf.folder, first_uid=conf.first_uid) as held:
        yield held


def skip_unless_works(conf: ScriptConf) -> None:
    """Skip the test, with the reason, where this fence does not work."""
    with acquired_slot(conf.folder, first_uid=conf.first_uid) as held:
        try:
            fence_for(conf, Sandbox(held.tmp, held.tmp, held.shm, held.uid))
        except NoFence as error:
            pytest.skip(str(error))


@pytest.fixture(params=["bwrap", "account", "none"])
def any_fence(request: pytest.FixtureRequest, configure: Callable[..., ScriptConf]) -> str:
    """Each fence that works on this host."""
    skip_unless_works(configure(FENCES=[request.param]))
    return str(request.param)


@pytest.fixture(params=["bwrap", "account"])
def real_fence(request: pytest.FixtureRequest, configure: Callable[..., ScriptConf]) -> str:
    """Each fence that works on this host and separates anything."""
    skip_unless_works(configure(FENCES=[request.param]))
    return str(request.param)


@pytest.fixture
def works(configure: Callable[..., ScriptConf]) -> None:
    """Any fence that works here."""
    configure(FENCES=["account", "none"] if os.geteuid() == 0 else ["bwrap", "none"])


@pytest.fixture
def dag(alice: User) -> Dag:
    return Dag.objects.create(name="test.dag", owner=alice, workspace=create_workspace(alice, {}))


@pytest.fixture
def ask(dag: Dag) -> Ask:
    """Function that creates a granted run of a script with this text."""

    def make(text: str = "", *arguments: str, **values: Any) -> ScriptRun:
        number, owning = next(_numbers), values.pop("dag", dag)
        executable = values.pop("executable", f"script{number}.sh")
        script = {"executable": executable, "arguments": [], **values.pop("script", {})}
        kind = values.get("kind", "pre")
        directory = values.get("directory", "")
        if text:
            put(owning, f"{directory}/{executable}".lstrip("/"), f"#!/bin/sh\n{text}\n")
        node = Node.objects.create(
            dag=owning, name=f"N{number}", ordinal=number, features={"scripts": {kind: script}}
        )
        row = {"kind": kind, "retry_number": 0, "state": "granted"} | values
        return ScriptRun.objects.create(
            dag=owning, node=node, executable=executable, arguments=list(arguments), **row
        )

    return make


def put(dag: Dag, path: str, content: str) -> None:
    """Write a file into the workspace, as a job or a submission does."""
    WorkspaceFile.objects.update_or_create(
        workspace_id=dag.workspace_id,
        path=path,
        defaults={"blob": store_bytes(content.encode()), "modified_at": timezone.now()},
    )


def files_of(dag: Dag) -> Mapping[str, str]:
    """Files of the workspace, without the scripts."""
    rows = WorkspaceFile.objects.filter(workspace_id=dag.workspace_id)
    names = rows.exclude(path__endswith=".sh").values_list("path", "blob_id")
    return {path: content(sha256) for path, sha256 in names}


def content(sha256: str) -> str:
    with open_blob(sha256) as file:
        return file.read().decode()


def done(run: ScriptRun) -> ScriptRun:
    """The run after the service has run everything that is granted."""
    script_service.run_granted()
    return ScriptRun.objects.select_related("output").get(pk=run.pk)


def said(run: ScriptRun) -> str:
    return content(run.output_id) if run.output_id else ""
