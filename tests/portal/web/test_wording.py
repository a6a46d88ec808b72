"""Sentences that pages promise to users. Other tests assert states, ids and numbers only."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.portal.web.markup import plain_text

EMPTY_PAGES = {
    "web:dags": "There are no DAGs yet.",
    "web:jobs": "There are no jobs yet: they appear when nodes of a DAG become ready, or when "
    "somebody submits them.",
    "web:pilots": "There are no pilots yet: the director submits pilots when jobs wait.",
    "web:task-queues": "No job waits for a pilot.",
    "web:sites": "No site is configured yet.",
    "web:downtimes": "No downtime has been entered.",
    "web:negotiation": "No negotiation has taken place yet.",
    "web:shares": "Nobody has a priority yet",
    "web:errors": "Nothing failed in the last 24 hours.",
    "web:notices": "You have no notices.",
}


@pytest.mark.parametrize(("name", "sentence"), EMPTY_PAGES.items())
def test_an_empty_page_says_what_is_missing(alice: Client, name: str, sentence: str) -> None:
    assert sentence in plain_text(alice.get(reverse(name)).content.decode())


REFUSALS = {
    ("DAG of another user", "hold"): "You may not do this",
    ("removed DAG", "hold"): "Nothing was done: the DAG is removed.",
    ("DAG without a reason", "hold"): "Give a reason",
}


@pytest.mark.parametrize(("situation", "sentence"), REFUSALS.items())
def test_a_refused_action_says_why(
    people: SimpleNamespace, alice: Client, situation: tuple[str, str], sentence: str
) -> None:
    what, event = situation
    dag = factories.dag(people.bob if "another" in what else people.alice)
    if "removed" in what:
        alice.post(reverse("web:steer", args=[dag.pk, "remove"]), {"reason": "not needed"})
    reason = "" if "without" in what else "disk full"

    answer = alice.post(reverse("web:steer", args=[dag.pk, event]), {"reason": reason})

    assert sentence in plain_text(answer.content.decode())


def test_a_page_that_is_not_there_names_the_object(alice: Client) -> None:
    page = alice.get(reverse("web:dag", args=[987])).content.decode()

    assert "There is no DAG 987" in plain_text(page)


def test_notifications_are_confirmed_in_words(people: SimpleNamespace, alice: Client) -> None:
    dag = factories.dag(people.alice)
    address = reverse("web:tell", args=[dag.pk])

    on = alice.post(address, {"tell": "yes"}, follow=True).content.decode()
    off = alice.post(address, {"tell": "no"}, follow=True).content.decode()

    number = dag.pk
    assert f"You are notified when DAG {number} ends, fails or is held." in plain_text(on)
    assert f"You are no longer notified about DAG {number}." in plain_text(off)
