"""Edited copies of DAGs: their texts, their own files, and where they begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.resubmission.own_description import beside
from wms.dags.resubmission.services import Edit, check_edit, resubmit_dag
from wms.dags.resubmission.texts import Kept, Role, read_source
from wms.dags.submission.checking import FaultyDag
from wms.dags.submission.workspaces import put_file, read_file

_NEWEST = Resumption()


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def failed(people: SimpleNamespace) -> Dag:
    """A chain of three nodes of which the second failed; notes.bin is no text."""
    dag = factories.running_dag(
        people.alice,
        node_count=3,
        is_chain=True,
        files={"notes.bin": b"\0\1", "dos.txt": b"a\r\nb\r\n"},
    )
    pilot = factories.pilot(dag.site.queues.get())
    for exit_code in (0, 1):
        factories.run_job(pilot, exit_code=exit_code)
        factories.turn()
    dag.refresh_from_db()
    return dag


def _resubmitted(dag: Dag, texts: Mapping[str, str], owner: User, **more: object) -> Dag:
    edit = Edit(texts, **{"reason": "a typo", **more})  # type: ignore[arg-type]
    done, _ = resubmit_dag(read_source(dag), edit, owner=owner, actor=Actor.person(owner))
    return Dag.objects.get(pk=done.dag.pk)


def _done(dag: Dag) -> set[str]:
    return set(dag.nodes.filter(state="done").values_list("name", flat=True))


@pytest.mark.slow
def test_texts_of_the_submission_are_changed_and_all_else_stays(
    people: SimpleNamespace, failed: Dag
) -> None:
    source = read_source(failed)

    new = _resubmitted(
        failed,
        {
            "run.sh": "#!/bin/sh\r\necho mended\r\n",
            "dos.txt": "a\nc\n",
            "job.sub": source.texts["job.sub"].text,
        },
        people.bob,
        labels=("again",),
        priority=7,
    )

    roles = {path: text.role for path, text in source.texts.items()}
    assert list(roles)[:3] == ["analysis.dag", "analysis.description", "job.sub"]
    assert roles["job.sub"] is Role.SUBMIT
    assert [(each.path, each.why) for each in source.kept] == [("notes.bin", Kept.NOT_TEXT)]
    assert (new.owner, new.previous_run, new.is_edited) == (people.bob, failed, True)
    assert (new.labels, new.priority, new.state, _done(new)) == (["again"], 7, "idle", set())
    files = dict(new.workspace.files.values_list("path", "blob_id"))
    assert set(files) == {"analysis.dag", "job.sub", "run.sh", "notes.bin", "dos.txt"}
    assert read_file(new.workspace_id, "run.sh") == b"#!/bin/sh\necho mended\n"
    assert read_file(new.workspace_id, "dos.txt") == b"a\r\nc\r\n"
    assert files["notes.bin"] == source.stored["notes.bin"].sha256
    assert read_file(failed.workspace_id, "run.sh") == b"#!/bin/sh\n"
    told = AuditEntry.objects.get(action="edit and resubmit DAG")
    assert (told.target, told.reason, told.actor) == (f"DAG {failed.pk}", "a typo", "bob")
    assert told.facts == {"new_dag": new.pk, "edited": ["dos.txt", "run.sh"]}
    event = new.events.get(event="submit")
    assert (event.reason, event.facts["edited"]) == ("a typo", ["dos.txt", "run.sh"])


@pytest.mark.slow
def test_a_copy_begins_where_the_dag_ended_without_nodes_that_the_edit_changes(
    people: SimpleNamespace, failed: Dag
) -> None:
    same = read_source(failed).texts["analysis.dag"].text
    other = same + 'VARS A1 n="2"\n'
    retried = same + "RETRY A2 3\n"

    begun = _resubmitted(failed, {"analysis.dag": retried}, people.alice, resumption=_NEWEST)
    again = _resubmitted(failed, {"analysis.dag": other}, people.alice, resumption=_NEWEST)
    kept = _resubmitted(
        failed, {"analysis.dag": other}, people.alice, resumption=_NEWEST, keeps_done=True
    )

    assert [_done(each) for each in (begun, again, kept)] == [{"A1"}, set(), {"A1"}]
    facts = [each.events.get(event="submit").facts for each in (begun, again, kept)]
    told = {"count": 1, "nodes": ["A1"]}
    assert [each.get("runs_again") for each in facts] == [None, told, None]
    assert [each.get("stays_done") for each in facts] == [None, None, told]
    outputs = failed.workspace.files.filter(attempt__isnull=False).values_list("path", flat=True)
    assert begun.workspace.files.filter(path__in=outputs).count() == len(outputs) > 0


@pytest.mark.slow
def test_a_node_that_the_edit_renames_is_left_out_of_the_rescue(
    people: SimpleNamespace, failed: Dag
) -> None:
    renamed = read_source(failed).texts["analysis.dag"].text.replace("A1", "First")
    edit = Edit({"analysis.dag": renamed}, resumption=_NEWEST, reason="clearer")

    found, _ = check_edit(read_source(failed), edit, owner=people.alice)
    new = _resubmitted(failed, edit.texts, people.alice, resumption=_NEWEST)

    assert (found.effect.gone, found.begins_done) == (("A1",), 0)
    assert _done(new) == set()


@pytest.mark.slow
def test_rescues_of_inner_dags_and_of_grown_ones_come_along_only_if_nothing_they_read_changes(
    people: SimpleNamespace, failed: Dag
) -> None:
    grown = b'DONE A1\nGROW {"kind": "pass", "node": "A1"}\n'
    put_file(failed.workspace, "inner.dag.rescue001", b"DONE X\n")
    put_file(failed.workspace, "analysis.dag.rescue002", grown)
    source, other = read_source(failed), {"run.sh": "#!/bin/sh\nexit 0\n"}
    first, newest = Resumption(rescue_number=1), _NEWEST

    def check(texts: Mapping[str, str], resumption: Resumption, *, keeps_done: bool = False):
        edit = Edit(texts, resumption=resumption, keeps_done=keeps_done)
        return check_edit(source, edit, owner=people.alice)[0]

    same, edited = check({}, first), check(other, first)
    kept = check(other, newest, keeps_done=True)

    assert [each.lost_inner for each in (same, edited, kept)] == [0, 1, 0]
    inner = ["inner.dag.rescue001" in each.submission.files for each in (same, edited, kept)]
    assert inner == [True, False, True]
    assert b"GROW" in kept.submission.files["analysis.dag.rescue002"].read()
    with pytest.raises(InvalidInput, match="grown"):
        check(other, newest)


@pytest.mark.slow
def test_the_ad_of_a_dag_that_found_no_site_is_mended(people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, node_count=1)
    Dag.objects.filter(pk=dag.pk).update(ad_attributes={"Requirements": "false", "Tier": "1"})
    source = read_source(Dag.objects.get(pk=dag.pk))
    [name] = [path for path, text in source.texts.items() if text.role is Role.DESCRIPTION]

    assert source.texts[name].text == "requirements = false\n+Tier = 1\n"
    first = _resubmitted(source.dag, {name: "requirements = Memory > 1\n+Tier = 1\n"}, people.alice)
    second = _resubmitted(first, {}, people.alice)

    for new in (first, second):
        assert new.ad_attributes == {"Requirements": "Memory > 1", "Tier": "1"}
        assert new.description_file == name


def test_what_a_description_gives_is_not_given_beside_it() -> None:
    dag = Dag(binding="job", labels=["mc", "late"], priority=4)

    described = beside(dag, "binding = job\nlabels = mc\npriority = 4\n")
    bare = beside(dag, "")

    assert (described.binding, described.labels, described.priority) == ("", ("late",), None)
    assert (bare.binding, bare.labels, bare.priority) == ("job", ("mc", "late"), 4)


@pytest.mark.slow
def test_options_go_along_but_for_those_of_an_edited_configuration(people: SimpleNamespace) -> None:
    dag = factories.dag(
        people.alice,
        node_count=1,
        commands="CONFIG my.conf\n",
        files={"my.conf": b"DAGMAN_MAX_JOBS_SUBMITTED = 5\n"},
    )
    Dag.objects.filter(pk=dag.pk).update(options={**dag.options, "max_pre": 3})
    dag.refresh_from_db()

    new = _resubmitted(
        dag, {"my.conf": "DAGMAN_MAX_JOBS_SUBMITTED = 8\n"}, people.alice, options={"max_post": 4}
    )

    assert (dag.options["max_jobs"], new.options) == (
        5,
        {"max_jobs": 8, "max_pre": 3, "max_post": 4},
    )


def test_faults_are_told_with_their_lines_and_nothing_is_stored(people: SimpleNamespace) -> None:
    dag = factories.dag(people.alice, node_count=1)
    source, owner = read_source(dag), people.alice
    edit = Edit({"analysis.dag": "JOB A1 job.sub\nJOBB B\n"}, reason="a typo")

    with pytest.raises(FaultyDag) as refused:
        resubmit_dag(source, edit, owner=owner, actor=Actor.person(owner))
    with pytest.raises(InvalidInput, match=r"other\.sub"):
        check_edit(source, Edit({"other.sub": ""}), owner=owner)
    with pytest.raises(InvalidInput, match="has ended"):
        check_edit(source, Edit({}, resumption=_NEWEST), owner=owner)
    with pytest.raises(ReasonRequired):
        resubmit_dag(source, replace(edit, reason=" "), owner=owner, actor=Actor.person(owner))

    assert [(each.file, each.line) for each in refused.value.findings] == [("analysis.dag", 2)]
    assert Dag.objects.count() == 1


def test_a_dag_inside_of_another_is_not_copied_alone(people: SimpleNamespace) -> None:
    outer = factories.dag(people.alice, node_count=1)
    inner = factories.dag(people.alice, name="inner.dag")
    Dag.objects.filter(pk=inner.pk).update(parent_node=outer.nodes.get(), root=outer)

    with pytest.raises(Conflict):
        read_source(Dag.objects.get(pk=inner.pk))
