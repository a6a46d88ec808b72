"""Fault isolation: one bad DAG, or one bad site, does not hold up the others."""

from __future__ import annotations

from datetime import datetime

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import DataError

from tests.wms.dags.driving import (
    NOW,
    advance,
    assert_log_agrees,
    claim_of,
    claim_one,
    end,
    match,
    states,
)
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import InboxEntry, User
from wms.dags.engine import cycle as engine
from wms.dags.engine.shared_rounds import Together
from wms.dags.engine.submitting import job_factory, ready_nodes
from wms.dags.models import Dag
from wms.dags.negotiation import cycle as negotiation
from wms.dags.services.dags import release_dags
from wms.dags.states import DagCause
from wms.jobs.description.rendering import NodeContext, Renderer
from wms.jobs.specs import JobSpec
from wms.sites.models import SiteAd

NODE = "JOB A step.sub"


@pytest.fixture(autouse=True)
def _site(make_site) -> None:
    make_site("site-a", max_matches=20)


@pytest.fixture
def rounds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No DAG moves on together with others."""
    monkeypatch.setattr(engine, "advance_together", lambda pks, now: Together(left=frozenset(pks)))


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("requirements = $(BAR)", "macros cannot be used"),
        ("+X = $$(Y)", "macros cannot be used"),
        ('rank = eval("CurMatches")', "eval cannot be used"),
        ("+A = B\n+B = A", "in a circle"),
        ('requirements = "\\377"', "can never be true"),
    ],
)
def test_an_ad_that_cannot_be_evaluated_is_refused_with_its_line(
    submit, description: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        submit(NODE, description_text=f"{description}\nqueue", description_name="d.sub")

    assert caught.value.findings[0].file == "d.sub"
    assert caught.value.findings[0].line is not None


@pytest.mark.parametrize(
    "description",
    [
        'rank = real("NaN")',
        'rank = real("INF")',
        'requirements = TARGET.Name == "\\377"',
        'rank = "\\377"',
    ],
)
def test_strange_values_in_one_ad_do_not_stop_the_negotiation(submit, description: str) -> None:
    submit(NODE, description_text=f"{description}\nqueue", description_name="d.sub")

    assert match(submit(NODE)).state == "running"


def test_a_dag_whose_stored_ad_is_broken_is_held_and_the_others_are_matched(submit) -> None:
    broken, healthy = submit(NODE), submit(NODE)
    Dag.objects.filter(pk=broken.pk).update(ad_attributes={"Rank": "1 +"})

    negotiation.run_cycle(NOW)

    broken.refresh_from_db()
    healthy.refresh_from_db()
    assert (broken.state, healthy.state) == ("held", "running")
    assert broken.state_cause == DagCause.AD


def test_a_site_whose_stored_ad_is_broken_is_passed_over(submit, make_site) -> None:
    make_site("broken")
    negotiation.run_cycle(NOW)
    SiteAd.objects.filter(site__name="broken").update(text="CurMatches = (")

    assert [offer.name for offer in negotiation.read_offers(NOW)] == ["site-a"]


def test_strange_site_attributes_do_not_stop_the_negotiation(submit, make_site) -> None:
    make_site("strange", attributes='X = real("INF")\nY = "\\377"')

    assert match(submit(NODE)).state == "running"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("executable = $$(M:/" + "a" * 2000 + ")", "executable is longer than 1024 characters"),
        ("executable = /bin/true\nrequest_memory = $$(M:999999T)", "memory_mb must be from 0"),
        ("executable = /bin/true\nrequest_memory = $$(M:" + "9" * 400 + ")", "not an amount"),
        (
            f"executable = /bin/true\narguments = $$(M:x){'y' * 80_000}\n"
            f"environment = A=$$(M:x){'z' * 60_000}",
            "arguments and environment exceed",
        ),
    ],
)
def test_a_node_that_cannot_become_a_job_holds_its_dag_only(
    submit, text: str, message: str
) -> None:
    bad, good = submit(NODE, files={"step.sub": f"{text}\nqueue\n"}), submit(NODE)
    match(good)

    bad.refresh_from_db()
    assert bad.state == "held"
    assert message in bad.state_reason
    assert states(good) == {"A": "submitted"}


@pytest.mark.usefixtures("rounds_of_their_own")
def test_a_fault_of_ours_holds_the_dag_and_the_others_go_on(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = submit(NODE), submit(NODE)
    negotiation.run_cycle(NOW)
    really = engine.advance

    def advance_or_fail(dag_id: int, **arguments: object) -> bool:
        if dag_id == bad.pk:
            raise DataError("value too long")
        return really(dag_id, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "advance", advance_or_fail)

    report = engine.run_cycle(NOW)

    assert (report["held"], report["advanced"]) == (1, 1)
    bad.refresh_from_db()
    assert bad.state_cause == DagCause.ENGINE
    assert "DataError" in bad.state_reason
    assert states(good) == {"A": "submitted"}


def test_a_very_wide_dag_is_submitted_in_rounds_that_end_in_time(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready_nodes, "BATCH", 4)
    dag = submit("\n".join(f"JOB N{n} step.sub" for n in range(10)))
    negotiation.run_cycle(NOW)
    counts = []
    for _ in range(3):
        engine.advance(dag.pk, now=NOW)
        dag.refresh_from_db()
        counts.append(dag.submitted_count)

    assert counts == [4, 8, 10]
    assert not InboxEntry.objects.filter(key=dag.pk).exists()
    while (attempt := claim_one()) is not None:
        end(attempt)
    assert advance(dag).state == "completed"
    assert_log_agrees(dag)


class Clock:
    """A clock that the test moves on, in place of the module `time`."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def let_nodes_take(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, making a job of a node takes so long."""
    clock = Clock()

    class SlowRenderer(Renderer):
        def jobs(self, context: NodeContext) -> list[JobSpec]:
            clock.now_s += seconds
            return super().jobs(context)

    monkeypatch.setattr(job_factory, "time", clock)
    monkeypatch.setattr(job_factory, "Renderer", SlowRenderer)


def test_a_dag_whose_jobs_take_long_to_make_is_submitted_in_several_rounds(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_nodes_take(4.0, monkeypatch)

    dag = submit("\n".join(f"JOB N{n} step.sub" for n in range(5)))
    negotiation.run_cycle(NOW)
    assert engine.advance(dag.pk, now=NOW) is engine.Advance.MORE

    dag.refresh_from_db()
    assert dag.submitted_count == 3
    assert advance(dag).submitted_count == 5
    assert dag.state == "running"
    assert_log_agrees(dag)


def test_a_node_of_which_it_takes_too_long_to_make_a_job_holds_the_dag(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_nodes_take(11.0, monkeypatch)

    dag = match(submit(NODE))

    assert (dag.state, dag.submitted_count) == ("held", 0)
    assert dag.state_cause == DagCause.SUBMISSION
    assert dag.state_reason.startswith("node A: ")
    assert "10 s" in dag.state_reason


@pytest.mark.usefixtures("rounds_of_their_own")
def test_a_dag_with_much_to_submit_takes_turns_with_the_others(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = submit("\n".join(f"JOB N{n} step.sub" for n in range(5)))
    others = [submit(NODE), submit(NODE)]
    negotiation.run_cycle(NOW)
    monkeypatch.setattr(ready_nodes, "BATCH", 1)
    turns, really = [], engine.advance

    def advance_noted(dag_id: int, *, now: datetime) -> engine.Advance:
        turns.append(dag_id)
        return really(dag_id, now=now)

    monkeypatch.setattr(engine, "advance", advance_noted)
    engine.run_cycle(NOW)

    assert turns[:3] == [wide.pk, *(dag.pk for dag in others)]
    assert [*states(wide).values()].count("submitted") == 5


@pytest.mark.usefixtures("rounds_of_their_own")
def test_a_dag_whose_round_takes_all_of_a_cycles_time_is_held_and_the_others_go_on(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = submit(NODE), submit(NODE)
    negotiation.run_cycle(NOW)
    really = engine.advance

    def advance_or_be_stopped(dag_id: int, *, now: datetime) -> engine.Advance:
        if dag_id == bad.pk:
            raise SoftTimeLimitExceeded
        return really(dag_id, now=now)

    monkeypatch.setattr(engine, "advance", advance_or_be_stopped)

    report = engine.run_cycle(NOW)
    engine.run_cycle(NOW)

    assert [count for name, count in report.items() if "time" in name and count] == [1]
    bad.refresh_from_db()
    assert bad.state == "held"
    assert bad.state_cause == DagCause.ENGINE
    assert states(good) == {"A": "submitted"}


@pytest.mark.usefixtures("rounds_of_their_own")
def test_a_cycle_begins_with_no_other_dag_when_it_has_taken_long(
    submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = [submit(NODE) for _ in range(3)]
    negotiation.run_cycle(NOW)
    clock, really = Clock(), engine.advance

    def advance_slowly(dag_id: int, *, now: datetime) -> bool:
        clock.now_s += 20.0
        return really(dag_id, now=now)

    monkeypatch.setattr(engine, "time", clock)
    monkeypatch.setattr(engine, "advance", advance_slowly)

    assert engine.run_cycle(NOW) == {"dags": 2, "advanced": 2}
    assert engine.run_cycle(NOW) == {"dags": 1, "advanced": 1}
    assert [states(dag) for dag in dags] == [{"A": "submitted"}] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("rounds_of_their_own")
def test_a_dag_whose_jobs_wait_with_too_many_different_needs_is_held_until_fewer_wait(
    submit, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_factory, "MAX_DIFFERENT_NEEDS", 3)
    monkeypatch.setattr(ready_nodes, "BATCH", 2)
    text = "\n".join(f'JOB N{n} step.sub\nVARS N{n} mb="{n}"' for n in range(6))
    step = "executable = /bin/true\nrequest_memory = $$(Nothing:$(mb))"
    dag, other = match(submit(text, files={"step.sub": step})), submit(NODE)
    advance(dag)

    advance(dag)

    assert (dag.state, dag.submitted_count) == ("held", 4)
    assert dag.state_cause == DagCause.SUBMISSION
    assert "3 different needs" in dag.state_reason
    assert match(other).state == "running"
    assert states(other) == {"A": "submitted"}

    claim_of("N1")
    release_dags([dag.pk], actor=Actor.person(alice))
    assert advance(dag).state == "running"
