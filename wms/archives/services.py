"""Services of archives, permitted and audited: import one, remove kept ones."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from django.db import transaction

from wms.accounting.walls import Walls, within_reach
from wms.archives import layout
from wms.archives.checking import check_archive
from wms.archives.manifest import Manifest
from wms.archives.models import ArchivedDag
from wms.core.actors import Actor
from wms.core.audit import record_action, record_actions
from wms.core.database.locks import wait_for_locks
from wms.core.errors import Conflict, NotFound, ReasonRequired, TooLarge
from wms.core.models import Role
from wms.core.policy import require_role
from wms.core.storage.current import scratch_folder
from wms.core.transitions import Applied
from wms.dags.models import Dag
from wms.jobs.content.blobs import keep_file
from wms.jobs.models import Blob

_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Imported:
    """An archive that is kept; `is_new` tells whether it was not before."""

    archive: ArchivedDag
    is_new: bool


def import_archive(
    stream: IO[bytes], *, actor: Actor, limit_bytes: int = layout.MOST_FILE_BYTES
) -> Imported:
    """Check an archive as a whole, and keep it to be looked at; nothing of it becomes a DAG.

    One that is kept already changes nothing. Raises NotPermitted, InvalidInput and TooLarge, and
    Conflict where another archive of the DAG is kept; then nothing is.
    """
    require_role(actor, Role.OPERATOR, "import archives")
    with tempfile.NamedTemporaryFile(dir=scratch_folder(), delete=False) as copy:
        path = Path(copy.name)
        try:
            # What is checked is what is kept, whoever changes the file meanwhile.
            sha256 = _copy(stream, copy, limit_bytes)
            known = ArchivedDag.objects.select_related("blob").filter(blob=sha256).first()
            if known is not None:
                return Imported(known, is_new=False)
            manifest = check_archive(copy)
            blob = keep_file(path, sha256=sha256, size_bytes=os.fstat(copy.fileno()).st_size)
            return _keep(manifest, blob, actor)
        finally:
            path.unlink(missing_ok=True)


def _copy(stream: IO[bytes], copy: IO[bytes], limit_bytes: int) -> str:
    """Copy a stream durably; its SHA-256. Raises TooLarge."""
    digest, left = hashlib.sha256(), limit_bytes
    while piece := stream.read(_PIECE_BYTES):
        left -= len(piece)
        if left < 0:
            raise TooLarge(f"The archive is larger than {limit_bytes} bytes.")
        digest.update(piece)
        copy.write(piece)
    copy.flush()
    os.fsync(copy.fileno())
    return digest.hexdigest()


@transaction.atomic
def _keep(manifest: Manifest, blob: Blob, actor: Actor) -> Imported:
    # Two who import the same at once: the second finds what the first has kept.
    wait_for_locks(["import of archives"])
    dag = manifest.dag
    same = ArchivedDag.objects.filter(
        installation=manifest.installation, dag_id=dag["id"], submitted_at=manifest.submitted_at
    ).first()
    if same is not None and same.blob_id == blob.pk:
        return Imported(same, is_new=False)
    if same is not None:
        raise Conflict(
            f"Archive {same.pk} is of the same DAG, with other contents: remove it first."
        )
    archive = ArchivedDag.objects.create(
        blob=blob,
        installation=manifest.installation,
        product_version=manifest.product_version,
        dag_id=dag["id"],
        name=dag["name"],
        owner_name=dag["owner"],
        group_name=dag["accounting_group"] or "",
        state=dag["state"],
        state_reason=dag["state_reason"],
        node_counts=manifest.node_states,
        job_counts=manifest.job_states,
        row_counts=manifest.rows,
        failures=manifest.failures,
        submitted_at=manifest.submitted_at,
        ended_at=manifest.ended_at,
        imported_by=actor.name,
        **_whose(manifest),
    )
    record_action("import archive", target=_target(archive), actor=actor, facts={"sha256": blob.pk})
    return Imported(archive, is_new=True)


def _whose(manifest: Manifest) -> dict[str, object]:
    """Owner and group by their keys, if the DAG is one of this installation.

    They are those of the DAG here: what a file says opens no wall.
    """
    dag = manifest.dag
    here = Dag.objects.filter(
        pk=dag["id"], name=dag["name"], created_at=manifest.submitted_at, root=None
    ).first()
    if here is None:
        return {"is_foreign": True}
    return {
        "is_foreign": False,
        "owner_id": here.owner_id,
        "accounting_group_id": here.accounting_group_id,
    }


@transaction.atomic
def remove_archives(archive_ids: Collection[int], *, actor: Actor, reason: str) -> Applied:
    """Remove kept archives; their contents go a day later, if nothing else names them.

    Raises NotFound, NotPermitted and ReasonRequired, in this order; then nothing is removed.
    """
    rows = within_reach(
        actor, ArchivedDag.objects.filter(pk__in=archive_ids), Walls.by_group
    ).order_by("pk")
    found = list(rows.select_for_update(of=("self",)))
    missing = sorted(set(archive_ids) - {each.pk for each in found})
    if missing:
        raise NotFound(f"There is no archive {', '.join(map(str, missing))}.")
    require_role(actor, Role.OPERATOR, "remove archives")
    if not reason.strip():
        raise ReasonRequired(event="remove")
    targets = [_target(each) for each in found]
    facts = {"sha256": [each.blob_id for each in found]}
    ArchivedDag.objects.filter(pk__in=[each.pk for each in found]).delete()
    record_actions(
        "remove archive", targets=targets, actor=actor, reason=reason.strip(), facts=facts
    )
    return Applied(changed=[each.pk for each in found])


def _target(archive: ArchivedDag) -> str:
    return f"archive {archive.pk}, DAG {archive.dag_id} {archive.name}"
