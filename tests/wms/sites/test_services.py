from __future__ import annotations

import pytest

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.selectors import element_settings
from wms.sites.services import QueueSpec, SiteSpec, configure_site, save_queue, save_site


@pytest.mark.parametrize(
    ("fields", "field", "line", "message"),
    [
        ({"requirements": "CurMatches <"}, "requirements", None, "not a ClassAd expression"),
        ({"requirements": "CurMatches = 1"}, "requirements", None, "write == or =?="),
        ({"rank": ""}, "rank", None, "blank"),
        ({"environment": "A=1\nB"}, "environment", 2, "expected NAME=value"),
        ({"environment": "A=1;B=2"}, "environment", 1, "semicolon"),
        ({"attributes": "X = 1\nY = ("}, "attributes", 2, "not a ClassAd expression"),
        ({"attributes": "A = B\nB = A"}, "attributes", None, "in a circle"),
        ({"requirements": 'eval("true")'}, "requirements", None, "eval cannot be used"),
        ({"attributes": "CurMatches = 0"}, "attributes", None, "set by Pilotage"),
        ({"attributes": "name = 0"}, "attributes", None, "set by Pilotage"),
        ({"name": "a b"}, "name", None, "letters, digits"),
    ],
)
def test_a_site_whose_ad_would_not_parse_is_refused_by_field_and_line(
    olga: User, fields: dict[str, str], field: str, line: int | None, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        configure_site(SiteSpec(**({"name": "x"} | fields)), [], actor=Actor.person(olga))

    (finding,) = caught.value.findings
    assert (finding.field, finding.line) == (field, line)
    assert message in finding.message
    assert not Site.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"element": "pbs"}, "element"),
        ({"settings": {"slots": 0}}, "settings"),
        ({"settings": {"colour": "red"}}, "settings"),
        ({"settings": {"directory": "relative"}}, "settings"),
        ({"cores": 0}, "cores"),
        ({"tags": [1]}, "tags"),
    ],
)
def test_a_queue_that_cannot_work_is_refused_and_so_is_its_new_site(
    olga: User, fields: dict[str, object], field: str
) -> None:
    queue = QueueSpec(**({"name": "q", "element": "local"} | fields))  # type: ignore[arg-type]

    with pytest.raises(InvalidInput) as caught:
        configure_site(SiteSpec(name="x"), [queue], actor=Actor.person(olga))

    assert caught.value.findings[0].field == field
    assert not Site.objects.exists()


def test_only_operators_configure_sites(sam: User) -> None:
    with pytest.raises(NotPermitted, match="sam may not configure sites"):
        configure_site(SiteSpec(name="x"), [], actor=Actor.person(sam))


def test_a_change_is_told_with_old_and_new_values(make_site, olga: User) -> None:
    make_site("x", max_matches=2)
    make_site("x", max_matches=5)
    make_site("x", max_matches=5)

    event = SiteEvent.objects.filter(event="change").get()
    assert event.facts == {"target": "site x", "max_matches": [2, 5]}
    entries = AuditEntry.objects.order_by("pk").values_list("action", "actor")
    assert list(entries) == [
        ("create site", "olga"),
        ("create queue", "olga"),
        ("change site", "olga"),
    ]


def test_the_settings_of_a_queue_are_told_to_operators_only(make_site) -> None:
    make_site("x", queue={"settings": {"slots": 3}})
    make_site("x", queue={"settings": {"slots": 4}})

    event = SiteEvent.objects.filter(event="change").get()
    assert event.facts == {"target": "queue x/main", "settings": "changed"}
    entry = AuditEntry.objects.get(action="change queue")
    assert entry.facts == {"settings": [{"slots": 3}, {"slots": 4}]}


def test_names_cannot_be_changed(make_site, olga: User) -> None:
    site = make_site("x")
    queue = Queue.objects.select_related("site").get()
    site.name, queue.name = "y", "other"

    with pytest.raises(InvalidInput, match="the name x cannot be changed"):
        save_site(site, actor=Actor.person(olga))
    with pytest.raises(InvalidInput, match="the name main cannot be changed"):
        save_queue(queue, actor=Actor.person(olga))


def test_a_local_queue_needs_no_settings(make_site) -> None:
    make_site("x", queue={"max_pilots": 3})

    settings = element_settings(Queue.objects.select_related("site").get())

    assert settings["slots"] == 3
    assert str(settings["directory"]).endswith("/pilots/x/main")
