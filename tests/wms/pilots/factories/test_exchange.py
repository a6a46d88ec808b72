"""Pilots that another installation submits: ordered, carried out, told of, taken back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings, strategies

from tests.factories import SYSTEM
from tests.wms.pilots.directing import direct, poll, reasons_of
from tests.wms.pilots.factories.installations import Line, Two, begin, install, post, secrets_of
from tests.wms.pilots.fake_element import FakeElement
from wms.accounting.models import AccountingGroup, Frontend
from wms.accounting.services import save_group
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotAuthenticated
from wms.core.models import User
from wms.elements.protocol import BatchState, PilotState
from wms.factories.messages import (
    MOST_LOG,
    MOST_REPORT_BYTES,
    EntryAd,
    NewBatch,
    NewPilot,
    Orders,
    PilotWord,
    Report,
    as_json,
)
from wms.factories.models import FactoryEntry, PilotOrder, RemoteFactory
from wms.factories.sealing import BrokenSeal, key_of, seal, unseal
from wms.factories.services import (
    create_factory,
    delete_factory,
    renew_token,
    revoke_token,
    save_factory,
)
from wms.pilots.factories import turns
from wms.pilots.factories.accepting import accept_orders
from wms.pilots.factories.reports import words_to_tell
from wms.pilots.factories.services import delete_remote_frontend
from wms.pilots.factory_models import RemoteOrder
from wms.pilots.models import Pilot
from wms.pilots.pressure.remover import cancel_pending
from wms.pilots.pressure_models import ElementContact
from wms.pilots.protocol.registration import register_pilot
from wms.pilots.selectors import asked_log, detailed_pilots
from wms.pilots.services import drain_pilot
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    made = Line()
    monkeypatch.setattr(turns, "call", made.call)
    return made


@pytest.fixture
def two(make_queue, olga: User, line: Line, tmp_path: Path, settings: Any, monkeypatch) -> Two:
    settings.PILOTAGE = {**settings.PILOTAGE, "FRONTEND_TOKENS_DIR": str(tmp_path / "tokens")}
    made = Two(*install(make_queue, olga, tmp_path / "tokens"), line)
    # The frontend answers with the clock of the test.
    monkeypatch.setattr("django.utils.timezone.now", lambda: made.now)
    made.exchange()
    return made


@pytest.mark.slow
def test_a_factory_submits_what_is_ordered_and_its_pilots_register_where_the_jobs_are(
    two: Two, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    add_jobs(3)
    two.run()

    element = elements["site-x"]
    ordered = set(Pilot.objects.filter(queue=two.here).values_list("uuid", flat=True))
    given_to = dict(secrets_of(element))
    assert set(given_to) == ordered
    assert len(secrets_of(element)) == len(ordered) == 3
    assert two.states(two.here) == two.states(two.there) == {"queued": 3}
    # No secret is left on the way.
    assert not PilotOrder.objects.exclude(sealed="").exists()
    assert not RemoteOrder.objects.exclude(sealed="").exists()

    begin(element)
    for uuid, secret in given_to.items():
        register_pilot(uuid, secret=secret, token=str(uuid4()), node={}, now=two.now)
    two.run(1)

    assert two.states(two.here) == two.states(two.there) == {"running": 3}
    assert set(PilotOrder.objects.values_list("state", flat=True)) == {"running"}

    begin(element, BatchState.DONE)
    Pilot.objects.filter(queue=two.here).update(heartbeat_at=two.now - timedelta(hours=1))
    two.run(1)
    assert two.states(two.there) == {"done": 3}
    assert two.states(two.here)["failed"] == 3
    assert RemoteOrder.objects.filter(is_settled=True).count() == 3


@pytest.mark.slow
def test_a_pilot_that_goes_wrong_is_told_with_node_exit_code_and_the_end_of_its_log(
    two: Two, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement], sam: User
) -> None:
    add_jobs(3)
    two.run()
    element = elements["site-x"]
    first, second, third = sorted(element.states)
    element.states |= {
        first: PilotState(BatchState.FAILED, node="wn7", exit_code=3),
        second: PilotState(BatchState.DONE, node="wn8", exit_code=0),
        third: PilotState(BatchState.RUNNING, node="wn9"),
    }
    element.logs = {
        first: "long ago " * 2000 + "\x1b[1mno\0 bubblewrap\ud800\n",
        second: "all well",
    }

    two.run(1)

    failed, done, running = (
        Pilot.objects.get(queue=two.here, batch_node=node) for node in ("wn7", "wn8", "wn9")
    )
    assert [each.batch_exit_code for each in (failed, done, running)] == [3, 0, None]
    told = asked_log(failed, limit_bytes=100).text
    assert told.endswith("[1mno? bubblewrap?\n")
    assert len(PilotOrder.objects.get(uuid=failed.uuid).log) == MOST_LOG
    assert asked_log(done, limit_bytes=100).text == ""
    # What was told is kept at one side only.
    assert set(RemoteOrder.objects.values_list("log", flat=True)) == {""}
    assert (element.calls.count("log"), failed.state) == (1, "aborted")
    page = detailed_pilots(sam).get(pk=failed.pk)
    assert (page.batch_node, page.batch_exit_code) == ("wn7", 3)


@pytest.mark.slow
def test_a_report_stays_below_what_the_frontend_reads(two: Two) -> None:
    orders = [
        RemoteOrder(
            remote=two.remote, uuid=uuid4(), state=RemoteOrder.State.RETURNED, is_failed=True,
            reason="ü" * 500, log="ü" * MOST_LOG,
        )
        for _ in range(60)
    ]  # fmt: skip
    RemoteOrder.objects.bulk_create(orders)

    told = words_to_tell(two.remote)
    report = Report(uuid4(), [], [each.word for each in told])

    assert 1 < len(told) < 60
    assert len(json.dumps(as_json(report))) < MOST_REPORT_BYTES
    two.run(3)
    assert not RemoteOrder.objects.filter(is_settled=False).exists()


@pytest.mark.slow
def test_the_limits_of_the_factory_hold_orders_back_and_what_is_not_wanted_is_taken_back(
    two: Two, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    Queue.objects.filter(pk=two.there.pk).update(max_queued_pilots=2)
    add_jobs(5)
    two.run()

    assert two.states(two.here) == {"queued": 5}
    assert two.states(two.there) == {"queued": 2}
    ad = FactoryEntry.objects.get()
    assert (ad.facts["waiting"], ad.facts["queued"], ad.facts["max_pilots"]) == (3, 2, 10)

    pilots = Pilot.objects.filter(queue=two.here)
    cancel_pending(two.here, [p.pk for p in pilots], reason="not wanted", now=two.now)
    two.exchange()
    two.exchange()

    assert two.states(two.there) == {"removed": 2}
    assert {each.state for each in elements["site-x"].states.values()} == {BatchState.CANCELLED}
    assert set(PilotOrder.objects.values_list("state", flat=True)) == {"cancelled"}


@pytest.mark.slow
def test_the_end_of_a_request_takes_back_what_waits_and_never_what_runs(
    two: Two, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    Queue.objects.filter(pk=two.there.pk).update(max_queued_pilots=2)
    add_jobs(4)
    two.run()
    element = elements["site-x"]
    first = next(iter(element.states))
    element.states[first] = PilotState(BatchState.RUNNING)

    two.line.loses_call = True
    two.pass_time(901)
    assert not two.exchange()

    assert element.states[first].state == BatchState.RUNNING
    assert Counter(each.state for each in element.states.values()) == {
        BatchState.RUNNING: 1,
        BatchState.CANCELLED: len(element.states) - 1,
    }
    assert not RemoteOrder.objects.filter(state="waiting").exists()

    # The frontend has no news: it concludes nothing, tells why, and orders nothing.
    poll(two.now)
    direct(two.pass_time(1))
    assert two.states(two.here) == {"queued": 4}
    contact = ElementContact.objects.get(queue=two.here, kind=ElementContact.Kind.POLL)
    assert "s ago" in contact.reason
    assert any("s ago" in reason for reason in reasons_of(two.here))

    # Back again, all is told at once; no back-off for what was taken back, and new ones come.
    two.line.loses_call = False
    two.run(3)
    assert two.states(two.here)["aborted"] == 3
    assert not ElementContact.objects.filter(queue=two.here, failures__gt=0).exists()
    assert len(secrets_of(element)) == len(dict(secrets_of(element)))
    assert two.states(two.there)["queued"] == 2


# Shrinking would take minutes: each example runs both installations.
@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(steps=strategies.lists(strategies.sampled_from(
    ["direct", "exchange", "lost call", "lost answer", "poll", "crash", "begin", "end", "later"]
), min_size=6, max_size=25))  # fmt: skip
def test_whatever_is_lost_or_dies_no_pilot_is_doubled_and_both_agree_in_the_end(
    two: Two, add_jobs, elements: dict[str, FakeElement], steps: list[str]
) -> None:
    element, line = elements["site-x"], two.line
    add_jobs(2)
    for step in steps:
        line.loses_call, line.loses_answer = step == "lost call", step == "lost answer"
        element.loses_answer = step == "crash"
        if step in ("direct", "crash"):
            direct(two.pass_time(2))
        elif step in ("exchange", "lost call", "lost answer"):
            two.exchange()
        elif step == "poll":
            poll(two.pass_time(6))
        elif step == "later":
            two.pass_time(130)
        else:
            begin(element, BatchState.RUNNING if step == "begin" else BatchState.DONE)
    line.loses_call = line.loses_answer = element.loses_answer = False
    for _ in range(6):
        two.run(1)
        two.pass_time(130)

    given_to = secrets_of(element)
    assert len(given_to) == len(dict(given_to))
    alive = {"submitted", "queued", "running"}
    there = Pilot.objects.filter(queue=two.there, state__in=alive)
    wanted = Pilot.objects.filter(queue=two.here, state__in=alive)
    assert {pilot.order.uuid for pilot in there} == set(wanted.values_list("uuid", flat=True))
    open_there = {
        each for each, pilot in element.states.items()
        if pilot.state in (BatchState.QUEUED, BatchState.RUNNING)
    }  # fmt: skip
    assert open_there == set(there.values_list("native_id", flat=True))


def test_calls_are_refused_with_a_reason_that_both_sides_show(
    two: Two, olga: User, tmp_path: Path
) -> None:
    factory, actor = RemoteFactory.objects.get(), Actor.person(olga)
    token = (tmp_path / "tokens/south").read_text()
    report = as_json(Report(uuid4()))

    # Somebody else with the same token: all pilots would be doubled.
    assert post(f"north:{token}", report).status_code == 409
    factory.refresh_from_db()
    assert factory.refused_reason

    factory.is_enabled = False
    save_factory(factory, actor=actor, reason="not now")
    assert not two.exchange()
    two.remote.refresh_from_db()
    assert two.remote.failures
    factory.is_enabled = True
    save_factory(factory, actor=actor, reason="again")

    revoke_token(factory, actor=actor, reason="lost")
    assert post(f"north:{token}", report).status_code == 401
    assert post(f"east:{token}", report).status_code == 401
    assert not two.exchange()
    two.remote.refresh_from_db()
    assert two.remote.failures

    (tmp_path / "tokens/south").write_text(renew_token(factory, actor=actor, reason="new"))
    assert two.exchange()
    two.remote.refresh_from_db()
    assert not two.remote.error


def test_a_faulty_report_is_refused_with_its_field_and_changes_nothing(
    two: Two, tmp_path: Path
) -> None:
    token = (tmp_path / "tokens/south").read_text()
    ad = EntryAd("site-x/main", is_open=True)
    good = as_json(Report(two.remote.instance, [ad], [PilotWord(uuid4(), "queued")]))
    for fault in (
        {"version": 2},
        {"instance": "no"},
        {"entries": [{**good["entries"][0], "name": "x"}]},
        {"entries": good["entries"] * 501},
        {"pilots": [{**good["pilots"][0], "state": "odd"}]},
        {"pilots": [{**good["pilots"][0], "reason": "\0"}]},
        {"pilots": {}},
    ):
        answer = post(f"north:{token}", {**good, **fault})
        assert answer.status_code == 400, fault
        assert next(iter(fault)) in answer.json()["detail"]

    answer = post(f"north:{token}", good)
    assert answer.status_code == 200
    # A pilot that was never ordered is not wanted.
    assert answer.json()["cancelled"] == [good["pilots"][0]["uuid"]]


def test_an_entry_is_of_one_queue_and_a_factory_serves_only_its_sites(two: Two, olga: User) -> None:
    actor = Actor.person(olga)
    settings_of = {"factory": "north", "entry": "site-x/main"}
    for site, changes in (
        ("site-g", {}),
        ("site-g", {"factory": "west"}),
        ("site-g", {"entry": "nothing"}),
    ):
        spec = QueueSpec(name="other", element="factory", settings={**settings_of, **changes})
        with pytest.raises(InvalidInput) as refused:
            configure_site(SiteSpec(name=site), [spec], actor=actor)
        assert refused.value.findings[0].field == "settings"

    create_factory(RemoteFactory(name="west"), actor=actor)
    Queue.objects.filter(pk=two.here.pk).update(settings={**settings_of, "factory": "west"})
    two.exchange()
    two.remote.refresh_from_db()
    assert "west" in two.remote.refused["site-x/main"]

    Queue.objects.filter(pk=two.here.pk).update(settings=settings_of)
    factory = RemoteFactory.objects.get(name="north")
    factory.sites = ["elsewhere"]
    save_factory(factory, actor=actor)
    two.exchange()
    two.remote.refresh_from_db()
    assert "site-f" in two.remote.refused["site-x/main"]


def test_an_order_for_what_is_not_its_frontends_is_returned_and_others_go_on(
    two: Two, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    def order(entry: str, **asked: int) -> NewBatch:
        size = {"cores": 1, "memory_mb": 1000, "gpus": 0, "minutes": 10} | asked
        return NewBatch(f"b-{uuid4().hex}", entry, "#!/bin/sh", **size, pilots=[pilot()])  # type: ignore[arg-type]

    def pilot() -> NewPilot:
        return NewPilot(uuid4(), "sealed")

    other = Frontend.objects.create(name="other")
    elsewhere = configure_site(
        SiteSpec(name="site-o"), [QueueSpec(name="main", element="host")], actor=SYSTEM
    )
    FrontendEntry.objects.create(frontend=other, queue=elsewhere.queues.get())
    wrong = [order("site-o/main"), order("no/where"), order("site-x/main", cores=10**6)]
    orders = Orders(900, batches=[*wrong, order("site-x/main")])

    assert accept_orders(two.remote, orders, {}, called_at=two.now) == 1

    told = {each.word.uuid: each.word for each in words_to_tell(two.remote)}
    for batch, why in zip(wrong, ("site-o/main", "no/where", "1000000 cores"), strict=True):
        word = told[batch.pilots[0].uuid]
        assert (word.state, why in word.reason) == ("failed", True)
    assert RemoteOrder.objects.filter(state=RemoteOrder.State.WAITING).count() == 1
    # What a frontend does not use of ours stands on its page.
    unused = Orders(900, refused={"site-x/main": "no queue here has this entry"})
    accept_orders(two.remote, unused, {}, called_at=two.now)
    olga = Client()
    olga.force_login(User.objects.get(username="olga"))
    assert "no queue here has this entry" in olga.get("/frontends/south/").content.decode()


@pytest.mark.slow
def test_what_is_of_another_installation_is_not_mixed_with_what_is_here(
    two: Two, olga: User, add_jobs: Callable[..., list[int]]
) -> None:
    actor = Actor.person(olga)
    group = AccountingGroup(name="ours", frontend=two.remote.frontend)
    with pytest.raises(InvalidInput) as refused:
        save_group(group, actor=actor)
    assert refused.value.findings[0].field == "frontend"

    add_jobs(1)
    two.run()
    there = Pilot.objects.get(queue=two.there)
    assert there.is_remote
    with pytest.raises(Conflict):
        drain_pilot(there.uuid, actor=actor, reason="look")
    with pytest.raises(NotAuthenticated):
        register_pilot(there.uuid, secret="guess", token="x", node={}, now=two.now)

    with pytest.raises(Conflict):
        delete_factory(RemoteFactory.objects.get(), actor=actor)
    with pytest.raises(Conflict):
        delete_remote_frontend(two.remote, actor=actor)


def test_a_sealed_secret_opens_with_its_key_only_and_unchanged() -> None:
    key, other = key_of("a" * 43, purpose="pilots"), key_of("a" * 43, purpose="orders")
    sealed = seal(key, "uuid:secret")
    assert unseal([other, key], sealed) == "uuid:secret"
    assert seal(key, "uuid:secret") != sealed
    for wrong_key, text in ((other, sealed), (key, sealed[:-8]), (key, "?"), (key, "A" + sealed)):
        with pytest.raises(BrokenSeal):
            unseal([wrong_key], text)
