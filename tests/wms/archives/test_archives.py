"""Archives: written alike each time, checked as a whole, kept once, seen by whom the DAG is."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.wms.archives.rewriting import (
    manifest_of,
    members_of,
    rows_of,
    with_manifest,
    with_rows,
    zipped,
)
from tests.wms.dags.driving import claim_of, end, match, run_all
from wms.accounting.models import AccountingGroup, Frontend
from wms.archives import layout, reading
from wms.archives.models import ArchivedDag
from wms.archives.reading import member_pieces, opened_file
from wms.archives.selectors import find_archive, visible_archives
from wms.archives.services import import_archive, remove_archives
from wms.archives.writing import stream_archive
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.exports.catalogue import export
from wms.dags.models import Dag
from wms.jobs.content.unnamed_contents import mark_unnamed
from wms.jobs.models import Blob, Job

pytestmark = pytest.mark.django_db
#: A is tried twice, S has a DAG inside, Z fails.
DAG = """\
JOB A step.sub
RETRY A 1
SUBDAG EXTERNAL S inner.dag
JOB Z step.sub
PARENT A CHILD S
PARENT S CHILD Z
SCRIPT PRE Z step.sh
"""
SECRET = 'environment = "TOKEN=swordfish"\n'


@pytest.fixture
def ended(submit: Any, make_site: Any) -> Dag:
    make_site()
    description = "executable = step.sh\narguments = $(JOB)\noutput = $(JOB).out\n"
    files = {
        "inner.dag": "JOB X step.sub\n",
        "step.sub": f"{description}{SECRET}transfer_input_files = https://a.example/f?sig=swordfish"
        "\nqueue\n",
    }
    dag = match(submit(DAG, files=files))
    end(claim_of("A"), 1)
    dag = run_all(dag, {"Z": 3})
    assert dag.state == "failed"
    return dag


@pytest.fixture
def content(ended: Dag) -> bytes:
    return written(ended)


def written(dag: Dag) -> bytes:
    return b"".join(stream_archive(dag, product_version="1.0"))


def kept(content: bytes, by: User) -> ArchivedDag:
    return import_archive(io.BytesIO(content), actor=Actor.person(by)).archive


def sights(*users: User) -> dict[str, set[ArchivedDag]]:
    return {user.username: set(visible_archives(user)) for user in users}


def test_an_archive_has_all_rows_of_the_tree_and_the_same_bytes_each_time(
    ended: Dag, content: bytes, monkeypatch: Any
) -> None:
    assert written(ended) == content

    assert [(row["name"], row["state"]) for row in rows_of(content, "nodes")] == [
        ("A", "done"), ("S", "done"), ("Z", "failed"), ("X", "done"),
    ]  # fmt: skip
    jobs = rows_of(content, "jobs")
    assert len(jobs) == Job.objects.count() == 4
    assert len(rows_of(content, "arcs")) == 2
    assert [row["outcome"] for row in rows_of(content, "attempts")].count("failed") == 2
    assert {row["node_name"] for row in rows_of(content, "script_runs")} == {"Z"}
    events = rows_of(content, "events")
    outer = [row["created_at"] for row in events if row["dag"] == ended.pk]
    assert outer == sorted(outer)
    assert {"A", "X", None} <= {row["node"] for row in events}
    manifest = manifest_of(content)
    assert manifest["node_states"] == {"done": 2, "failed": 1}
    assert [row["node"] for row in manifest["failures"]] == ["A", "Z"]
    members = members_of(content)
    log = "".join(export(ended, "eventlog", now=timezone.now()))
    assert members[f"logs/{ended.pk}.nodes.log"].decode() == log
    inner = next(row for row in rows_of(content, "files") if row["path"] == "inner.dag")
    assert members[inner["content"]] == b"JOB X step.sub\n"

    monkeypatch.setattr(layout, "CHUNK_ROWS", 2)
    small = written(ended)
    assert rows_of(small, "events") == events
    assert "nodes/000002.jsonl" in members_of(small)


def test_no_value_of_an_environment_and_no_signed_address_is_told(content: bytes) -> None:
    told = {name: text for name, text in members_of(content).items() if "contents/" not in name}
    assert not [name for name, text in told.items() if b"swordfish" in text]


def test_what_goes_on_or_is_inside_of_another_is_not_archived(
    ended: Dag, submit: Any, content: bytes
) -> None:
    running = match(submit("JOB A step.sub\n"))
    inner = Dag.objects.get(root=ended)
    for dag in (running, inner):
        with pytest.raises(Conflict):
            written(dag)
    Job.objects.filter(topic_key=ended.pk, name="Z").update(state="waiting")
    with pytest.raises(Conflict):
        written(ended)


def test_an_archive_is_kept_once_and_read_back(
    ended: Dag, content: bytes, olga: User, monkeypatch: Any
) -> None:
    first = import_archive(io.BytesIO(content), actor=Actor.person(olga))
    second = import_archive(io.BytesIO(content), actor=Actor.person(olga))

    assert (first.is_new, second.is_new) == (True, False)
    assert first.archive == second.archive
    archive = find_archive(olga, first.archive.pk)
    assert (archive.dag_id, archive.state, archive.node_count) == (ended.pk, "failed", 3)
    assert (archive.owner, archive.is_foreign) == (ended.owner, False)
    assert AuditEntry.objects.filter(action="import archive").count() == 1
    assert Dag.objects.count() == 2
    mark_unnamed([archive.blob_id], now=timezone.now())
    assert Blob.objects.get(pk=archive.blob_id).unnamed_since is None
    with opened_file(archive) as file:
        every = file.page("nodes", start=0, most=3, wanted=lambda row: True)
        rest = file.page("nodes", start=3, most=3, wanted=lambda row: True)
        failed = file.page("nodes", start=0, most=9, wanted=lambda row: row["state"] == "failed")
        monkeypatch.setattr(reading, "MOST_LOOKED_AT", 2)
        cut = file.page("nodes", start=0, most=9, wanted=lambda row: row["state"] == "failed")
    assert ([row["name"] for row in every.rows], every.following) == (["A", "S", "Z"], 3)
    assert ([row["name"] for row in rest.rows], rest.following) == (["X"], None)
    assert ([row["name"] for row in failed.rows], failed.following) == (["Z"], None)
    assert (cut.rows, cut.following) == ([], 2)
    name = f"logs/{ended.pk}.jobstate.log"
    assert b"".join(member_pieces(archive, name)) == members_of(content)[name]


def _sized(content: bytes) -> bytes:
    """A member that unpacks to a thousand times its size."""
    members = members_of(content)
    return zipped(members | {"nodes/000001.jsonl": b" " * 2 * layout.RATIO_FROM_BYTES})


def _row(**values: Any) -> Callable[[list[Any]], Any]:
    return lambda rows: rows[0].update(values)


_NODES = "nodes/000001.jsonl"
FAULTY: dict[str, tuple[Callable[[bytes], bytes], str, int | None]] = {
    "no zip": (lambda c: b"PK not at all", "", None),
    "cut": (lambda c: c[:-30], "", None),
    "something behind it": (lambda c: c + b"more", "", None),
    "not deflated": (
        lambda c: zipped(members_of(c), zipfile.ZIP_STORED), "dags/000001.jsonl", None,
    ),
    "a path": (lambda c: zipped(members_of(c) | {"../a": b""}), "../a", None),
    "another kind": (
        lambda c: zipped(members_of(c) | {"cows/000001.jsonl": b"{}\n"}), "cows/000001.jsonl", None,
    ),
    "a bomb": (_sized, _NODES, None),
    "a member less": (
        lambda c: zipped({n: t for n, t in members_of(c).items() if n != _NODES}), _NODES, None,
    ),
    "another hash": (lambda c: zipped(members_of(c) | {_NODES: b"{}\n"}), _NODES, None),
    "a version to come": (lambda c: with_manifest(c, version=2), "manifest.json", None),
    "another format": (lambda c: with_manifest(c, format="zoo"), "manifest.json", None),
    "more in the manifest": (lambda c: with_manifest(c, cows=1), "manifest.json", None),
    "other counts": (
        lambda c: with_manifest(c, node_states={"done": 3}), _NODES, 3,
    ),
    "a DAG that runs": (
        lambda c: with_manifest(c, dag=manifest_of(c)["dag"] | {"state": "running"}),
        "manifest.json", None,
    ),
    "a row less": (lambda c: with_rows(c, "events/000001.jsonl", list.pop), "manifest.json", None),
    "a field more": (lambda c: with_rows(c, _NODES, _row(cows=1)), _NODES, 1),
    "another type": (lambda c: with_rows(c, _NODES, _row(priority=True)), _NODES, 1),
    "a huge number": (lambda c: with_rows(c, _NODES, _row(priority=2**70)), _NODES, 1),
    "no number": (lambda c: with_rows(c, _NODES, _row(priority=float("nan"))), _NODES, 1),
    "half a character": (lambda c: with_rows(c, _NODES, _row(category="\ud800")), _NODES, 1),
    "a null character": (lambda c: with_rows(c, _NODES, _row(category="\0")), _NODES, 1),
    "another DAG's": (lambda c: with_rows(c, _NODES, _row(dag=1)), _NODES, 1),
    "no time": (lambda c: with_rows(c, _NODES, _row(state_since="noon")), _NODES, 1),
}  # fmt: skip


def test_a_faulty_archive_is_told_with_its_place_and_nothing_is_kept(
    content: bytes, olga: User
) -> None:
    blobs = Blob.objects.count()
    found = {}
    for what, (make, *_) in FAULTY.items():
        with pytest.raises(InvalidInput) as refused:
            kept(make(content), olga)
        [finding] = refused.value.findings
        found[what] = (finding.member, finding.line)

    assert found == {what: tuple(place) for what, (_, *place) in FAULTY.items()}
    assert not ArchivedDag.objects.exists()
    assert Blob.objects.count() == blobs


def test_another_archive_of_the_same_dag_is_refused(ended: Dag, olga: User) -> None:
    kept(written(ended), olga)
    other = b"".join(stream_archive(ended, product_version="1.1"))
    with pytest.raises(Conflict):
        kept(other, olga)
    assert ArchivedDag.objects.count() == 1


def test_who_sees_the_dag_sees_its_archive_and_a_foreign_one_is_the_operators(
    ended: Dag, content: bytes, olga: User, alice: User, charlie: User, sam: User
) -> None:
    group, beside = (
        AccountingGroup.objects.create(name=name, frontend=Frontend.objects.create(name=name))
        for name in ("cms", "atlas")
    )
    group.members.add(alice)
    beside.members.add(charlie)
    Dag.objects.filter(pk=ended.pk).update(accounting_group=group)
    own = kept(content, olga)

    seen = sights(alice, charlie, sam, olga)
    assert seen == {"alice": {own}, "charlie": set(), "sam": {own}, "olga": {own}}

    remove_archives([own.pk], actor=Actor.person(olga), reason="imported anew")
    Dag.objects.filter(pk=ended.pk).update(name="another")
    own = kept(content, olga)
    seen = sights(alice, charlie, sam, olga)
    assert seen == {"alice": set(), "charlie": set(), "sam": set(), "olga": {own}}


def test_operators_import_and_remove_with_a_reason(content: bytes, olga: User, sam: User) -> None:
    with pytest.raises(NotPermitted):
        kept(content, sam)
    archive = kept(content, olga)
    person = Actor.person(olga)
    with pytest.raises(NotPermitted):
        remove_archives([archive.pk], actor=Actor.person(sam), reason="room")
    with pytest.raises(ReasonRequired):
        remove_archives([archive.pk], actor=person, reason=" ")
    with pytest.raises(NotFound):
        remove_archives([archive.pk, 0], actor=person, reason="room")

    remove_archives([archive.pk], actor=person, reason="room")

    assert not ArchivedDag.objects.exists()
    entry = AuditEntry.objects.get(action="remove archive")
    assert (entry.actor, entry.reason) == ("olga", "room")
    assert mark_unnamed([archive.blob_id], now=timezone.now() + timedelta(days=2)) == 1
