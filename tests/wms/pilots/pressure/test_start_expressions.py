"""Start expressions: for which jobs a frontend's pilots are sent, and which of them they take."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from matching.ads import classads
from matching.task_queues import start_expressions
from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests.wms.pilots.claiming import ask, job_of, running_pilot, submit
from tests.wms.pilots.directing import direct, sent
from wms.accounting.frontends import save_frontend
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import User
from wms.explain.needs import MatchVerdict, explain_needs
from wms.jobs.models import Job
from wms.pilots.models import Pilot
from wms.pilots.pressure.fitting import QueueMatcher
from wms.pilots.pressure_models import PressureRequest
from wms.sites.frontends.entries import save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.taskqueues import operations
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.selectors import needs_of


@pytest.fixture
def lsst(db: None, alice: User) -> Frontend:
    made = Frontend.objects.create(name="lsst")
    AccountingGroup.objects.create(name="lsst", frontend=made).members.add(alice)
    return made


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("RequestCpus >", 1, 14),
        ("true &&\n(RequestCpus > 1", 2, None),
        ("RequestRam > 1", None, None),
        ("MY.RequestCpus > 1", None, None),
        ("TARGET.Site == 1", None, None),
        ('Machine == "wn1"', None, None),
        ('eval("1") == 1', None, None),
        (f"1 == {'1+' * 3000}1", None, None),
    ],
)
def test_a_faulty_expression_is_refused_with_its_place(
    lsst: Frontend, make_queue: Any, olga: User, text: str, line: int | None, column: int | None
) -> None:
    actor = Actor.person(olga)
    entry = FrontendEntry(frontend=lsst, queue=make_queue(), start_expression=text)
    lsst.start_expression = text
    for save in (lambda: save_frontend(lsst, actor=actor), lambda: save_entry(entry, actor=actor)):
        with pytest.raises(InvalidInput) as fault:
            save()
        [finding] = fault.value.findings
        assert finding.field == "start_expression"
        assert line is None or finding.line == line
        assert column is None or finding.column == column


def test_pilots_are_sent_where_the_expressions_are_true_and_take_only_such_jobs(
    lsst: Frontend, make_queue: Any, alice: User, olga: User
) -> None:
    here, there = make_queue("here", cores=4), make_queue("there", cores=4)
    lsst.start_expression = 'MY.Site != "there" || RequestCpus > 1'
    save_frontend(lsst, actor=Actor.person(olga))
    big = FrontendEntry(frontend=lsst, queue=there, start_expression="TARGET.RequestMemory < 10")
    for entry in (FrontendEntry(frontend=lsst, queue=here), big):
        save_entry(entry, actor=Actor.person(olga))
    submit(alice, "lsst")

    assert sent() == {"here/main": 1, "there/main": 0}
    request = PressureRequest.objects.get(queue=there, frontend=lsst)
    assert any("start expression" in text for text in request.reasons)

    elsewhere = running_pilot(there, frontend=lsst)
    assert job_of(ask(elsewhere)) is None
    assert not Job.objects.exclude(state="waiting").exists()
    assert job_of(ask(running_pilot(here, frontend=lsst))) is not None


def test_what_the_expression_of_the_default_frontend_refuses_is_explained(
    make_queue: Any, alice: User, olga: User
) -> None:
    queue = make_queue()
    row = FrontendEntry(queue=queue, start_expression='Owner != "alice"')
    save_entry(row, actor=Actor.person(olga))
    submit(alice)

    assert sent() == {"site-a/main": 0}

    told = explain_needs(needs_of(TaskQueue.objects.get()), now=timezone.now())
    assert told.verdict == MatchVerdict.NEVER
    assert 'Owner != "alice"' in told.queues[0].refusal
    assert job_of(ask(running_pilot(queue))) is None


def test_a_claim_passes_over_all_that_are_alike_and_finds_the_one_that_may_start(
    lsst: Frontend, make_queue: Any, alice: User, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_queue(memory_mb=4000)
    lsst.start_expression = "RequestMemory < 100 && AccountingGroup =!= undefined"
    save_frontend(lsst, actor=Actor.person(olga))
    save_entry(FrontendEntry(frontend=lsst, queue=queue), actor=Actor.person(olga))
    for memory_mb in (1000, 2000):
        for setup in range(4):
            submit(alice, "lsst", memory_mb=memory_mb, tags=(), disk_mb=setup)
    fits = submit(alice, "lsst", memory_mb=50)
    monkeypatch.setattr(operations, "_MOST_UNSTARTED", 3)

    assert job_of(ask(running_pilot(queue, frontend=lsst))) == fits


def test_as_few_evaluations_as_values_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def evaluate(*given: Any) -> Any:
        counted.append("")
        return classads.evaluate(*given)

    monkeypatch.setattr(start_expressions, "evaluate", evaluate)
    texts = ('MY.Site != "s7" && RequestMemory < 400', "RequestCpus <= Cpus")
    offers = {
        f"{frontend} {number}": Resource(
            site=f"s{number}", cpu_time_s=9000, memory_mb=9000, cores=4, start=(texts[frontend],)
        )
        for frontend in range(2)
        for number in range(200)
    }
    matcher = QueueMatcher(offers)

    masks = [matcher.mask(Needs.of("alice", memory_mb=number)) for number in range(500)]

    assert [len(matcher.queues(mask)) for mask in masks] == [399] * 400 + [200] * 100
    assert len(counted) == 200 + 500 + 1


def test_frontends_that_have_none_take_all_as_before(
    lsst: Frontend, make_queue: Any, alice: User, olga: User
) -> None:
    queue = make_queue()
    save_entry(FrontendEntry(frontend=lsst, queue=queue), actor=Actor.person(olga))
    submit(alice, "lsst")
    direct(timezone.now())

    assert Pilot.objects.get().frontend == lsst
