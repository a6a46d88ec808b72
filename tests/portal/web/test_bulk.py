"""Acting on many objects from a list: select, look, confirm, watch, try again."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core import signing
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal import selection
from tests import factories
from tests.portal.world import small_world
from tests.wms.bulk.conftest import finish, outcomes
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.services import hold_dags, remove_dags

LIVE = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "live"}
Browser = Callable[[User], Client]


def _token(client: Client, query: str = "", name: str = "dags") -> str:
    page = client.get(reverse(f"web:{name}") + query).content.decode()
    found = re.search(r'name="selection" value="([^"]+)"', page)
    assert found, "the list offers no action"
    return found[1]


def _choose(client: Client, action: str, **given: Any) -> HttpResponse:
    body = {"list": "dags", "action": action, **given}
    return client.post(reverse("web:new-bulk"), body)


def _all(client: Client, action: str, query: str = "") -> BulkOperation:
    answer = _choose(client, action, all="1", selection=_token(client, query))
    assert answer.status_code == 302, answer.content.decode()
    return BulkOperation.objects.latest("pk")


def _confirm(client: Client, operation: BulkOperation, **given: Any) -> HttpResponse:
    body = {"seen": operation.pending_count, "reason": "disk full", **given}
    return client.post(reverse("web:confirm-bulk", args=[operation.pk]), body)


def _page(client: Client, operation: BulkOperation, query: str = "") -> str:
    address = reverse("web:bulk-operation", args=[operation.pk]) + query
    return " ".join(client.get(address).content.decode().split())


def test_all_dags_of_a_user_are_held_by_a_filter(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    mine = [factories.dag(people.alice, name=f"a{n}.dag") for n in range(3)]
    other = factories.dag(people.bob)
    sam = browser_of(people.sam)

    operation = _all(sam, "hold", "?owner=alice")
    page = _page(sam, operation)
    answer = _confirm(sam, operation)
    finish(operation)

    assert "Hold: 3 DAGs" in page
    assert "Nothing has been done yet" in page
    assert answer["Location"] == reverse("web:bulk-operation", args=[operation.pk])
    assert {dag.state for dag in Dag.objects.filter(owner=people.alice)} == {"held"}
    other.refresh_from_db()
    assert other.state == "idle"
    assert set(outcomes(operation)) == {dag.pk for dag in mine}
    done = _page(sam, operation)
    assert "3 of 3 dealt with" in done
    assert f'href="{reverse("web:dags")}?owner=alice"' in done


def test_rows_that_were_ticked_are_acted_on_and_no_others(
    alice: Client, people: SimpleNamespace
) -> None:
    first, second = (factories.dag(people.alice, name=f"d{n}.dag") for n in range(2))

    _choose(alice, "hold", pick=[first.pk])
    operation = BulkOperation.objects.get()
    _confirm(alice, operation)
    finish(operation)

    assert [Dag.objects.get(pk=dag.pk).state for dag in (first, second)] == ["held", "idle"]


def test_what_is_made_after_the_list_was_opened_never_joins(
    people: SimpleNamespace, alice: Client
) -> None:
    old = factories.dag(people.alice, name="old.dag")
    Dag.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=1))
    token = _token(alice)
    new = factories.dag(people.alice, name="new.dag")
    Dag.objects.filter(pk=new.pk).update(created_at=timezone.now() + timedelta(seconds=1))

    _choose(alice, "hold", all="1", selection=token)

    assert set(outcomes(BulkOperation.objects.get())) == {old.pk}


def test_another_number_than_the_list_showed_is_told(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)]
    token = _token(alice, "?state=idle")
    hold_dags([dags[0].pk], actor=Actor.person(people.alice), reason="wait")

    _choose(alice, "hold", all="1", selection=token)
    page = _page(alice, BulkOperation.objects.get())

    assert "The list showed <b>3</b>, and <b>2</b> fit now." in page


def test_what_drops_out_between_preview_and_confirmation_is_told_and_asked_again(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(3)]
    operation = _all(alice, "hold", "?state=idle")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    refused = _confirm(alice, operation)
    operation.refresh_from_db()
    again = _confirm(alice, operation)

    assert refused.status_code == 409
    page = " ".join(refused.content.decode().split())
    assert "You were shown 3; 2 are left" in page
    assert "<b>1</b> of 3 do not fit the filter any more" in page
    assert again.status_code == 302
    finish(operation)
    assert outcomes(operation)[dags[0].pk][0] == "skipped"
    assert [Dag.objects.get(pk=dag.pk).state for dag in dags] == ["removed", "held", "held"]


def test_who_accepts_that_some_drop_out_is_not_asked_again(
    people: SimpleNamespace, alice: Client
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    operation = _all(alice, "hold", "?state=idle")
    remove_dags([dags[0].pk], actor=Actor.person(people.alice), reason="no use")

    assert _confirm(alice, operation, accepts="1").status_code == 302


def test_sent_twice_it_is_confirmed_once(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    operation = _all(alice, "hold")

    answers = [_confirm(alice, operation) for _ in range(2)]

    assert {answer.status_code for answer in answers} == {302}
    assert operation.events.filter(event="confirm").count() == 1


def test_a_destructive_action_on_others_objects_asks_to_type_the_number(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    for number in range(2):
        factories.dag(people.alice, name=f"d{number}.dag")
    sam = browser_of(people.sam)
    operation = _all(sam, "remove")

    shown = _page(sam, operation)
    untyped = _confirm(sam, operation)
    wrong = _confirm(sam, operation, typed="3")
    right = _confirm(sam, operation, typed="2")

    assert "Type 2 to confirm" in shown
    assert "<b>2</b> belong to others." in shown
    assert (untyped.status_code, wrong.status_code, right.status_code) == (400, 400, 302)
    assert "type 2, the number of DAGs" in untyped.content.decode()


def test_own_objects_are_removed_without_typing(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    operation = _all(alice, "remove")

    assert "to confirm</label>" not in _page(alice, operation)
    assert _confirm(alice, operation).status_code == 302


def test_a_hold_needs_a_reason_and_a_release_none(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    hold = _all(alice, "hold")
    refused = _confirm(alice, hold, reason=" ")
    _confirm(alice, hold)
    finish(hold)
    release = _all(alice, "release")

    assert refused.status_code == 400
    assert "Give a reason" in refused.content.decode()
    assert _confirm(alice, release, reason="").status_code == 302


def test_the_preview_says_who_is_skipped_and_why(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    factories.running_dag(people.alice, node_count=3, name="run.dag")
    factories.dag(people.bob, name="other.dag")
    gone = factories.dag(people.alice, name="gone.dag")
    remove_dags([gone.pk], actor=Actor.person(people.alice), reason="no use")

    page = _page(browser_of(people.alice), _all(browser_of(people.alice), "hold"))

    assert "<b>1</b> can be changed as they are now; the others are left as they are:" in page
    assert "<b>1</b>: it is removed" in page
    assert "<b>1</b>: it belongs to another user, and this needs the role shifter" in page
    assert "Of their jobs, 3 are queued and 0 are with pilots." in page
    assert "They have 7 nodes" in page


def test_with_none_of_them_it_can_be_done_and_the_page_says_so(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.bob)

    page = _page(alice, _all(alice, "hold"))

    assert "With none of them this can be done now." in page
    assert 'id="confirm"' not in page


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda token: token[:-2] + ("aa" if token[-2:] != "aa" else "bb"), "does not come from"),
        (lambda token: "", "does not come from"),
        (lambda token: signing.dumps({"list": "dags"}, salt="other"), "does not come from"),
    ],
)
def test_a_forged_token_is_refused(
    people: SimpleNamespace, alice: Client, spoil: Callable[[str], str], told: str
) -> None:
    factories.dag(people.alice)

    answer = _choose(alice, "hold", all="1", selection=spoil(_token(alice)))

    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not BulkOperation.objects.exists()


def test_an_old_token_is_refused(
    people: SimpleNamespace, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.dag(people.alice)
    token = _token(alice)
    monkeypatch.setattr(selection, "TOKEN_LIFE_S", -1)

    answer = _choose(alice, "hold", all="1", selection=token)

    assert answer.status_code == 400
    assert "more than a day ago" in answer.content.decode()


def test_a_token_of_somebody_else_or_of_another_list_is_refused(
    people: SimpleNamespace, alice: Client, browser_of: Browser
) -> None:
    factories.dag(people.alice)
    factories.job(people.alice)

    of_bob = _choose(alice, "hold", all="1", selection=_token(browser_of(people.bob)))
    of_jobs = _choose(alice, "hold", all="1", selection=_token(alice, name="jobs"))

    assert "made by somebody else" in of_bob.content.decode()
    assert "one of jobs, not of dags" in of_jobs.content.decode()
    assert (of_bob.status_code, of_jobs.status_code) == (400, 400)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"list": "dags", "action": "hold"}, 400),
        ({"list": "dags", "action": "hold", "pick": ["x"]}, 404),
        ({"list": "dags", "action": "hold", "pick": ["987654"]}, 404),
        ({"list": "audit", "action": "hold", "pick": ["1"]}, 404),
        ({"action": "hold", "pick": ["1"]}, 404),
    ],
)
def test_nothing_and_what_is_not_there_are_refused(
    people: SimpleNamespace, alice: Client, body: dict[str, Any], status: int
) -> None:
    assert alice.post(reverse("web:new-bulk"), body).status_code == status


def test_an_action_that_there_is_not_is_refused(people: SimpleNamespace, alice: Client) -> None:
    dag = factories.dag(people.alice)

    assert _choose(alice, "explode", pick=[dag.pk]).status_code == 404
    assert not BulkOperation.objects.exists()


def test_operations_of_others_are_not_there_for_users(
    people: SimpleNamespace, browser_of: Browser, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = _all(alice, "hold")
    address = reverse("web:bulk-operation", args=[operation.pk])
    bob, sam = browser_of(people.bob), browser_of(people.sam)

    assert bob.get(address).status_code == 404
    assert _confirm(bob, operation).status_code == 404
    assert bob.post(reverse("web:stop-bulk", args=[operation.pk])).status_code == 404
    assert sam.get(address).status_code == 200
    assert _confirm(sam, operation).status_code == 403
    assert f"bulk-{operation.pk}" in sam.get(reverse("web:bulk")).content.decode()
    assert f"bulk-{operation.pk}" not in bob.get(reverse("web:bulk")).content.decode()


def test_what_failed_is_tried_again_as_an_operation_of_its_own(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    dags = [factories.dag(people.alice, name=f"d{n}.dag") for n in range(2)]
    sam = browser_of(people.sam)
    operation = _all(sam, "hold")
    _confirm(sam, operation)
    User.objects.filter(pk=people.sam.pk).update(role="user")
    finish(operation)
    User.objects.filter(pk=people.sam.pk).update(role="shifter")

    page = _page(sam, operation, "?outcome=failed")
    answer = sam.post(reverse("web:retry-bulk", args=[operation.pk]))
    again = BulkOperation.objects.latest("pk")
    _confirm(sam, again, reason="")
    finish(again)

    assert "Retry the failed (2)" in page
    assert "sam may not do this" in page
    assert answer["Location"] == reverse("web:bulk-operation", args=[again.pk])
    assert (again.retry_of_id, again.reason) == (operation.pk, "disk full")
    assert again.done_count == 2
    assert {Dag.objects.get(pk=dag.pk).state for dag in dags} == {"held"}


def test_a_stopped_operation_offers_to_go_on_with_the_rest(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = _all(alice, "hold")
    _confirm(alice, operation)

    for _ in range(2):
        alice.post(reverse("web:stop-bulk", args=[operation.pk]))

    page = _page(alice, operation)
    assert "Go on with the rest (1)" in page
    assert operation.events.filter(event="stop").count() == 1


def test_the_items_are_paged_and_chosen_by_outcome(people: SimpleNamespace, alice: Client) -> None:
    for number in range(52):
        factories.job(people.alice, name=f"job{number}")
    token = _token(alice, name="jobs")
    alice.post(
        reverse("web:new-bulk"), {"list": "jobs", "action": "hold", "all": 1, "selection": token}
    )
    operation = BulkOperation.objects.get()
    _confirm(alice, operation)
    finish(operation)

    first = alice.get(reverse("web:bulk-operation", args=[operation.pk]) + "?outcome=done")
    second = alice.get(
        reverse("web:bulk-operation", args=[operation.pk]) + first.context["stretch"].following
    )

    assert (len(first.context["lines"]), len(second.context["lines"])) == (50, 2)
    assert "None has this outcome." in _page(alice, operation, "?outcome=failed")


def test_a_list_that_did_not_change_is_not_sent_again_although_its_token_is_another(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.job(people.alice)
    address = reverse("web:jobs")
    first = alice.get(address, **LIVE)

    second = alice.get(address, HTTP_IF_NONE_MATCH=first["ETag"], **LIVE)
    factories.job(people.alice)
    third = alice.get(address, HTTP_IF_NONE_MATCH=first["ETag"], **LIVE)

    assert 'name="selection"' in first.content.decode()
    assert (second.status_code, third.status_code) == (304, 200)


def test_the_actions_stand_in_what_is_refreshed_and_are_for_who_may_act(
    people: SimpleNamespace, browser_of: Browser
) -> None:
    factories.dag(people.alice)
    address = reverse("web:dags")

    live = browser_of(people.alice).get(address + "?owner=alice", **LIVE).content.decode()
    by_vera = browser_of(people.vera).get(address).content.decode()
    sites = browser_of(people.alice).get(reverse("web:sites")).content.decode()

    assert 'id="bulk-hold"' in live
    assert "csrfmiddlewaretoken" not in live
    assert "bulk-form" not in by_vera
    assert "bulk-form" not in sites


def test_too_many_operations_at_once_are_refused(people: SimpleNamespace, alice: Client) -> None:
    factories.dag(people.alice)
    made = [_all(alice, "hold") for _ in range(4)]

    answers = [_confirm(alice, operation) for operation in made]

    assert [answer.status_code for answer in answers] == [302, 302, 302, 429]
    assert "3 of your bulk operations go on already" in answers[-1].content.decode()


def test_the_arguments_of_an_action_are_asked_for_and_checked(
    people: SimpleNamespace, alice: Client
) -> None:
    dag = factories.running_dag(people.alice)
    _choose(alice, "rematch", pick=[dag.pk])
    operation = BulkOperation.objects.get()

    faulty = _confirm(alice, operation, **{"with-avoid_min": "soon", "with-lets_finish": "1"})
    huge = _confirm(alice, operation, **{"with-avoid_min": "99999999"})
    right = _confirm(alice, operation, **{"with-avoid_min": "90", "with-lets_finish": "1"})

    assert (faulty.status_code, huge.status_code, right.status_code) == (400, 400, 302)
    page = faulty.content.decode()
    assert "Give a whole number." in page
    assert 'value="soon"' in page
    assert 'name="with-lets_finish" value="1" checked' in page
    operation.refresh_from_db()
    assert operation.arguments == {"lets_finish": True, "avoid_min": 90}


@pytest.mark.parametrize(
    ("name", "action"),
    [("jobs", "kill"), ("pilots", "drain"), ("sites", "ban"), ("placements", "remove")],
)
def test_each_list_leads_to_previews_and_operations_of_its_objects(
    people: SimpleNamespace, browser_of: Browser, name: str, action: str
) -> None:
    world = small_world()
    ada = browser_of(world.people.ada)
    body = {"list": name, "action": action, "all": 1, "selection": _token(ada, name=name)}

    ada.post(reverse("web:new-bulk"), body)
    operation = BulkOperation.objects.latest("pk")
    preview = _page(ada, operation)
    _confirm(ada, operation, typed=operation.frozen_count)
    finish(operation)
    page = _page(ada, operation)

    first = operation.items.order_by("pk")[0]
    one = {"sites": world.site.name}.get(name, str(first.object_id))
    address = reverse(f"web:{name.removesuffix('s')}", args=[one])
    assert (preview.count(f'href="{address}"'), page.count(f'href="{address}"')) == (1, 1)
    assert operation.state == "done"
    assert operation.done_count >= (name != "jobs")


def test_a_filter_that_cannot_be_read_any_more_is_told(
    people: SimpleNamespace, alice: Client
) -> None:
    factories.dag(people.alice)
    operation = _all(alice, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(filters={"colour": ["red"]})

    answer = _confirm(alice, operation)

    assert answer.status_code == 400
    assert "colour: is no filter of this list" in answer.content.decode()
