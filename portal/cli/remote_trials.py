"""Trials at a portal elsewhere: sends the files of a folder, waits, and returns the report.

A trial whose report nobody waits for any more is stopped.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from portal.cli.client import ApiError, Client, Part, Unreachable
from portal.cli.dag_reports import ToolReport
from portal.cli.folder_archive import pack_folder
from wms.dags.language.origin import Origin

_TOLD = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0


class NotTried(Exception):
    """The portal could not make the trial; the text says why."""


def remote_report(
    client: Client,
    kind: str,
    root: Path,
    names: Sequence[str],
    origin: Origin,
    *,
    allows_missing: bool = False,
    is_for_dagman: bool = False,
    behaviour: dict[str, Any] | None = None,
    tell: Callable[[str], None],
) -> ToolReport:
    """Report of a trial (`check` or `dry-run`) of DAG files of a folder at a portal.

    `tell` hears of the progress. Raises ApiError and NotTried.
    """
    texts = [("dag", name) for name in names]
    texts += [("directory", origin.directory)] if origin.directory else []
    texts += [("root", origin.root)] if origin.root else []
    texts += [("use_dag_dir", "true")] if origin.uses_dag_dir else []
    texts += [("allow_missing", "true")] if allows_missing else []
    texts += [("dagman", "true")] if is_for_dagman else []
    texts += [("behaviour", json.dumps(behaviour))] if behaviour else []
    with tempfile.TemporaryDirectory(prefix="pilotage-") as temporary:
        archive = Path(temporary, "files.tar.gz")
        for name in pack_folder(archive, root, names)[:_TOLD]:
            tell(f"{name} is large, and told by its name only")
        trial = client.post_files(f"trials/{kind}/", [Part("archive", archive)], texts=texts)
    try:
        ended = _ended(client, trial["id"], tell)
    except BaseException:
        with suppress(ApiError):
            client.post_bytes(f"trials/{trial['id']}/stop/")
        raise
    if ended["state"] != "done":
        raise NotTried(f"trial {ended['id']} is {ended['state']}: {ended['state_reason']}")
    return ToolReport(ended["exit_code"], ended["report"], ended["text"])


def _ended(client: Client, trial_id: int, tell: Callable[[str], None]) -> dict[str, Any]:
    pause_s, told = _FIRST_PAUSE_S, ""
    while True:
        with suppress(Unreachable):
            trial: dict[str, Any] = client.get(f"trials/{trial_id}/")
            if trial["ended_at"] is not None:
                return trial
            progress = f"{trial['ended_count']} of {trial['node_count']} nodes have ended"
            now = f"trial {trial_id}: {progress if trial['node_count'] else trial['state']}"
            if now != told:
                tell(told := now)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
