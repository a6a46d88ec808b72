from __future__ import annotations

from typing import Any

import pytest

from matching.negotiation.explanation import MatchVerdict
from tests.wms.dags.follow.event_log_writer import NOW, follow, say, states, submit, take
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, TooLarge
from wms.core.models import User
from wms.dags.engine import cycle as engine
from wms.dags.follow.services import (
    MAX_CHUNK_BYTES,
    follow_log,
    ingest_chunk,
)
from wms.dags.models import Dag
from wms.dags.negotiation import cycle as negotiation
from wms.dags.services.dags import hold_dags, release_dags, remove_dags
from wms.explain.answers import answer_for_dag
from wms.jobs.models import Job


def test_only_who_may_steer_the_dag_sends_its_log(alice: User, charlie: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    with pytest.raises(NotPermitted):
        take(dag, b"", actor=Actor.person(charlie))


def test_what_cannot_be_followed_is_refused(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")
    who = Actor.person(alice)

    with pytest.raises(Conflict, match="running"):
        follow_log(dag.pk, name="x.log", actor=who, now=NOW)
    with pytest.raises(NotFound):
        follow_log(0, name="x.log", actor=who, now=NOW)
    with pytest.raises(NotFound):
        ingest_chunk(0, b"", offset=0, actor=who, now=NOW)


@pytest.mark.parametrize(
    ("text", "options", "field", "line"),
    [
        ("JOB A a.sub\n", {"time_zone": "Mars"}, "time_zone", None),
        ("JOB A a.sub\n", {"allow_events": 128}, "allow_events", None),
        ("JOBB A a.sub\n", {}, "", 1),
    ],
)
def test_a_faulty_request_is_refused_with_its_field_or_line(
    alice: User, text: str, options: dict[str, Any], field: str, line: int | None
) -> None:
    with pytest.raises(InvalidInput) as refused:
        follow(alice, text, **options)

    [finding] = refused.value.findings
    assert (finding.field, finding.line) == (field, line)
    assert not Dag.objects.exists()


def test_pieces_that_cannot_be_read_are_refused(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    with pytest.raises(TooLarge):
        take(dag, b"x" * (MAX_CHUNK_BYTES + 1))
    with pytest.raises(Conflict, match=str(MAX_CHUNK_BYTES)):
        take(dag, b"x" * MAX_CHUNK_BYTES)
    for chunk, offset, file, field in (
        (b"<c>\n", 0, "case.dag.nodes.log", ""),
        (b"", -1, "", "offset"),
    ):
        with pytest.raises(InvalidInput) as refused:
            take(dag, chunk, offset)
        assert [(each.file, each.field) for each in refused.value.findings] == [(file, field)]


def test_what_makes_no_sense_in_a_log_is_told(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\n")

    say(dag, "rubbish\n...\n", submit("5.0", "A"))

    assert states(dag) == {"A": "submitted"}
    [warning] = dag.followed_log.warnings
    assert warning.startswith("byte 0:")


def test_the_loops_leave_a_followed_dag_alone(alice: User, make_site: Any) -> None:
    make_site()
    dag = follow(alice, "JOB A a.sub\n")
    who = Actor.person(alice)

    negotiation.run_cycle(NOW)
    engine.run_cycle(NOW)
    hold_dags([dag.pk], actor=who, reason="look at it")
    engine.run_cycle(NOW)
    with pytest.raises(Conflict, match="held"):
        say(dag, submit("5.0", "A"))
    release_dags([dag.pk], actor=who)
    negotiation.run_cycle(NOW)
    engine.run_cycle(NOW)

    dag.refresh_from_db()
    assert (dag.state, dag.site) == ("running", None)
    assert states(dag) == {"A": "ready"}
    assert not Job.objects.exists()
    assert answer_for_dag(alice, dag.pk, now=NOW).verdict is MatchVerdict.NOT_ALLOWED


def test_a_followed_dag_can_be_removed(alice: User) -> None:
    dag = follow(alice, "JOB A a.sub\nFINAL F f.sub\n")
    say(dag, submit("5.0", "A"))

    remove_dags([dag.pk], actor=Actor.person(alice), reason="not wanted")

    dag.refresh_from_db()
    assert (dag.state, dag.status) == ("removed", 4)
    assert states(dag)["A"] == "failed"
