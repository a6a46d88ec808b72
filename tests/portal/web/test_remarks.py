"""Forms of remarks: a second click, a stale form, hostile words; and the summary of a shift."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from django.test import Client
from django.urls import reverse

from tests import factories
from wms.core.actors import Actor
from wms.core.models import AuditEntry, User
from wms.dags.services.dags import hold_dags
from wms.remarks.models import Handling, Remark
from wms.remarks.services import assign
from wms.sites.services import ban_site


def test_a_second_click_writes_nothing_and_a_stale_form_decides_nothing(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    sam, dag = browser_of(people.sam), factories.dag(people.alice)
    address = reverse("web:notes", args=["dag", dag.pk])
    page = sam.get(reverse("web:dag", args=[dag.pk]))
    notes = page.context["notes"]
    seen = 'form="remark-form" name="seen" value="looked after by nobody"'
    assert seen in page.content.decode()
    sent = {
        "seen": "looked after by nobody",
        "nonce": notes.nonce,
        "text": "known",
        "event": "acknowledge",
    }

    assert [sam.post(address, sent).status_code for _ in range(2)] == [302, 302]
    assert Remark.objects.count() == 1
    assign("dag", [dag.pk], actor=Actor.person(people.olga))
    stale = sam.post(address, sent | {"nonce": "another"})

    assert stale.status_code == 409
    assert stale.context["notes"].form["text"].value() == "known"
    assert Handling.objects.get().assigned_to == people.olga
    assert Remark.objects.count() == 2


def test_words_are_shown_as_typed_and_only_web_addresses_are_links(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    sam, dag = browser_of(people.sam), factories.dag(people.alice)
    text = '<b onclick="x">, javascript:alert(1), see http://a.org/?q="><script>'
    sam.post(reverse("web:notes", args=["dag", dag.pk]), {"text": text, "event": "note"})

    shown = sam.get(reverse("web:remarks")).content.decode()

    assert "&lt;b onclick=&quot;x&quot;&gt;, javascript:alert(1), see" in shown
    assert '<a href="http://a.org/?q=" rel="noopener noreferrer nofollow">' in shown
    assert "&quot;&gt;&lt;script&gt;" in shown


def test_a_summary_has_what_was_written_and_steered_in_its_time(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    sam, dag = browser_of(people.sam), factories.dag(people.alice)
    sam.post(reverse("web:write-log"), {"text": "a quiet night"})
    ban_site(factories.site().name, actor=Actor.system("test"), reason="drill")
    assign("dag", [dag.pk], actor=Actor.person(people.sam))
    hold_dags([dag.pk], actor=Actor.person(people.sam), reason="look")
    address = reverse("web:shift-summary")

    shift = sam.get(address).context["shift"]

    assert dict(shift.events) == {"note": 1, "assign": 1}
    assert AuditEntry.objects.filter(actor="system:test", object_kind="site").exists()
    assert shift.done == [("sam", "hold DAG", 1)]
    assert not sam.get(f"{address}?created=31d..1d").context["shift"].subjects
    for wrong in ("soon", "..1d", "32d", "40d..1d"):
        refused = sam.get(address, {"created": wrong})
        assert refused.status_code == 400
        assert "created" in refused.context["form"].errors


def test_lists_lead_to_what_is_assigned_to_oneself_and_back(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    sam, dag = browser_of(people.sam), factories.dag(people.alice)
    factories.dag(people.alice)
    assign("dag", [dag.pk], actor=Actor.person(people.olga), person="sam")

    for name, query in (
        ("dags", "?assigned=me"), ("sites", "?assigned=me"), ("errors", "?assigned=me"),
        ("remarks", "?person=me"),
    ):  # fmt: skip
        every = sam.get(reverse(f"web:{name}")).content.decode()
        assert f'href="{query}" id="assigned-to-me"' in every, name
    mine = sam.get(reverse("web:dags"), {"assigned": "me"}).context["listing"]
    assert [line.pk for line in mine.lines] == [dag.pk]
    assert (mine.mine.is_chosen, mine.mine.query) == (True, "?saved=none")
