"""A factory that the frontend calls: the same exchange, begun by the other side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.wms.pilots.directing import direct, poll, reasons_of
from tests.wms.pilots.factories.installations import (
    LineToFactory,
    TwoCalled,
    begin,
    install_called,
    post,
    secrets_of,
)
from tests.wms.pilots.fake_element import FakeElement
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.elements.protocol import BatchState, PilotState
from wms.factories.messages import Orders, Question, as_json
from wms.factories.models import FactoryEntry, PilotOrder, RemoteFactory
from wms.factories.services import renew_token, save_factory
from wms.pilots.factories import calls
from wms.pilots.factories.callers import renew_caller_token, revoke_caller_token
from wms.pilots.factories.selectors import remote_reasons
from wms.pilots.factories.services import save_remote_frontend
from wms.pilots.factory_models import RemoteFrontend, RemoteOrder
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import register_pilot

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(
    make_queue: Any, olga: User, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> TwoCalled:
    tokens = tmp_path / "tokens"
    settings.PILOTAGE = {**settings.PILOTAGE, "FACTORY_TOKENS_DIR": str(tokens)}
    line = LineToFactory()
    monkeypatch.setattr(calls, "post", line.post)
    made = TwoCalled(*install_called(make_queue, olga, tokens), line)  # type: ignore[arg-type]
    # The factory answers with the clock of the test.
    monkeypatch.setattr("django.utils.timezone.now", lambda: made.now)
    assert made.exchange()
    return made


@pytest.mark.slow
def test_a_factory_that_calls_nobody_submits_what_it_is_brought(
    two: TwoCalled, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    add_jobs(3)
    two.run()

    element = elements["site-x"]
    given_to = dict(secrets_of(element))
    assert set(given_to) == set(Pilot.objects.filter(queue=two.here).values_list("uuid", flat=True))
    assert two.states(two.here) == two.states(two.there) == {"queued": 3}
    assert not PilotOrder.objects.exclude(sealed="").exists()
    assert not RemoteOrder.objects.exclude(sealed="").exists()

    begin(element)
    for uuid, secret in given_to.items():
        register_pilot(uuid, secret=secret, token=str(uuid4()), node={}, now=two.now)
    two.run(1)
    assert two.states(two.here) == two.states(two.there) == {"running": 3}

    begin(element, BatchState.DONE)
    two.run(1)
    assert two.states(two.there) == {"done": 3}
    assert set(PilotOrder.objects.values_list("state", flat=True)) == {"done"}
    assert RemoteOrder.objects.filter(is_settled=True).count() == 3
    remote, factory = RemoteFrontend.objects.get(), RemoteFactory.objects.get()
    assert (remote.turn, remote.turn_told, remote.error) == (None, {}, "")
    assert (factory.failures, factory.instance) == (0, remote.instance)
    assert remote.caller == factory.caller


@pytest.mark.slow
def test_what_is_lost_of_a_turn_is_made_good_by_the_next_and_no_pilot_is_doubled(
    two: TwoCalled, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    element = elements["site-x"]
    for loses in ("report", "report answer", "orders", "orders answer"):
        add_jobs(1)
        direct(two.pass_time(2))
        two.line.loses = loses
        assert not two.exchange()
        direct(two.pass_time(2))
        two.line.loses = ""
        two.run(1)

        there = Pilot.objects.filter(queue=two.there, state="queued")
        here = Pilot.objects.filter(queue=two.here, state="queued")
        ordered = set(there.values_list("order__uuid", flat=True))
        assert ordered == set(here.values_list("uuid", flat=True)) != set()
        assert len(secrets_of(element)) == len(ordered)

    begin(element, BatchState.FAILED, 3)
    poll(two.pass_time(6))
    two.line.loses = "orders"
    assert not two.exchange()
    # It was told, but nothing says that it arrived: it is told again.
    assert not RemoteOrder.objects.filter(is_settled=True).exists()
    two.line.loses = ""
    two.exchange()
    assert not RemoteOrder.objects.filter(is_settled=False).exists()


@pytest.mark.slow
def test_a_frontend_that_is_away_for_long_loses_what_waits_and_never_what_runs(
    two: TwoCalled, add_jobs: Callable[..., list[int]], elements: dict[str, FakeElement]
) -> None:
    add_jobs(3)
    two.run()
    element = elements["site-x"]
    first = next(iter(element.states))
    element.states[first] = PilotState(BatchState.RUNNING)

    two.line.loses = "report"
    two.pass_time(901)
    assert not two.exchange()

    assert Counter(each.state for each in element.states.values()) == {
        BatchState.RUNNING: 1,
        BatchState.CANCELLED: 2,
    }
    # The frontend has no news: it concludes nothing, and tells why.
    poll(two.now)
    direct(two.pass_time(1))
    assert two.states(two.here) == {"queued": 3}
    assert any("the line is cut" in reason for reason in reasons_of(two.here))
    assert remote_reasons(two.now)[two.remote.frontend_id].startswith("the request is over")

    two.line.loses = ""
    two.run(3)
    assert two.states(two.here)["aborted"] == 2
    assert two.states(two.there)["queued"] >= 2


def test_orders_of_an_earlier_report_are_refused_and_change_nothing(
    two: TwoCalled, tmp_path: Path
) -> None:
    token = (tmp_path / "tokens/north").read_text()
    factory = RemoteFactory.objects.get()
    question = as_json(Question(factory.caller))
    early = post(f"south:{token}", question, path="report").json()
    late = post(f"south:{token}", question, path="report").json()
    until = RemoteFrontend.objects.get().lease_until

    orders = as_json(Orders(600), turn=early["turn"])
    assert post(f"south:{token}", orders, path="orders").status_code == 409
    assert RemoteFrontend.objects.get().lease_until == until
    orders = as_json(Orders(600), turn=late["turn"])
    assert post(f"south:{token}", orders, path="orders").status_code == 200
    # Once only.
    assert post(f"south:{token}", orders, path="orders").status_code == 409


def test_a_call_that_may_not_be_is_refused_with_a_reason_that_both_sides_show(
    two: TwoCalled, olga: User, tmp_path: Path
) -> None:
    factory, remote, actor = RemoteFactory.objects.get(), two.remote, Actor.person(olga)
    token = (tmp_path / "tokens/north").read_text()
    question = as_json(Question(uuid4()))

    # Another installation with the same token would take back what this one has ordered.
    assert post(f"south:{token}", question, path="report").status_code == 409
    for credential in (f"south:{token}x", f"east:{token}", "south:"):
        assert post(credential, question, path="report").status_code == 401
    # A factory that is called does not call, whatever token it has.
    assert post(f"north:{token}", question).status_code in (400, 401)
    for body in ({"version": 2}, {"version": 1, "instance": 5}, []):
        assert post(f"south:{token}", body, path="report").status_code == 400
    assert post(f"south:{token}", as_json(Orders(600)), path="orders").status_code == 400

    two.pass_time(11)
    remote.is_enabled = False
    save_remote_frontend(remote, actor=actor, reason="not now")
    assert not two.exchange()
    factory.refresh_from_db()
    remote.refresh_from_db()
    assert "switched off" in factory.error
    assert "switched off" in remote.refused_reason
    remote.is_enabled = True
    save_remote_frontend(remote, actor=actor, reason="again")

    revoke_caller_token(remote, actor=actor, reason="lost")
    assert not two.exchange()
    new = renew_caller_token(remote, actor=actor, reason="another one")
    assert not two.exchange()
    (tmp_path / "tokens/north").write_text(new)
    assert two.exchange()
    factory.refresh_from_db()
    assert (factory.failures, factory.error) == (0, "")
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"revoke token of remote frontend", "renew token of remote frontend"} <= actions


def test_another_installation_at_the_factorys_address_is_not_believed_until_the_token_changes(
    two: TwoCalled, olga: User, tmp_path: Path
) -> None:
    RemoteFrontend.objects.update(instance=uuid4())
    FactoryEntry.objects.all().delete()

    assert not two.exchange()
    factory = RemoteFactory.objects.get()
    assert "another installation" in factory.error
    assert not factory.entries.exists()

    new = renew_caller_token(two.remote, actor=Actor.person(olga), reason="it has moved")
    (tmp_path / "tokens/north").write_text(new)
    assert two.exchange()
    assert factory.entries.exists()


def test_one_of_two_calls_and_each_has_the_token_of_the_other(two: TwoCalled, olga: User) -> None:
    actor, factory = Actor.person(olga), RemoteFactory.objects.get()
    with pytest.raises(Conflict):
        renew_token(factory, actor=actor, reason="new")
    with pytest.raises(ReasonRequired):
        renew_caller_token(two.remote, actor=actor, reason="")
    for field, row, save in (
        ("frontend_name", RemoteFactory(name="a", frontend_name="b"), save_factory),
        ("frontend_name", RemoteFactory(name="a", url="https://a.org"), save_factory),
        ("url", RemoteFactory(name="a", url="ftp://a.org", frontend_name="b"), save_factory),
    ):
        with pytest.raises(InvalidInput) as refused:
            save(row, actor=actor)
        assert field in [finding.field for finding in refused.value.findings]

    # From now on the factory calls: its token of before is worth nothing.
    factory.url = factory.frontend_name = ""
    save_factory(factory, actor=actor, reason="it may call now")
    factory.refresh_from_db()
    assert factory.token_sha256 == ""
    two.remote.url, two.remote.factory_name = "https://south.example.org", ""
    with pytest.raises(InvalidInput):
        save_remote_frontend(two.remote, actor=actor)
    two.remote.factory_name = "north"
    save_remote_frontend(two.remote, actor=actor)
    with pytest.raises(Conflict):
        renew_caller_token(two.remote, actor=actor, reason="new")
    assert RemoteFrontend.objects.get().token_sha256 == ""
