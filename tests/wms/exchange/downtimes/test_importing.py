"""Import of downtimes: previewed and stored as a whole; a second import changes what it knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests import factories
from tests.wms.exchange.downtimes.test_reading import calendar, downtime
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted, ReasonRequired, TooLarge
from wms.core.models import AuditEntry, User
from wms.exchange.downtimes.entries import MAX_BYTES, MAX_ENTRIES, MAX_PLACES, ImportOptions
from wms.exchange.downtimes.importing import (
    DowntimePlan,
    DowntimePlanChanged,
    import_downtimes,
    preview_downtimes,
)
from wms.sites.downtimes.models import Downtime
from wms.sites.downtimes.services import cancel_downtimes, change_downtime, terms_of
from wms.sites.models import Site, SiteEvent
from wms.sites.services import save_site

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
OPTIONS = ImportOptions("team-calendar", sites={"Florida computing": "Florida"})


@pytest.fixture
def site(db: None) -> Site:
    return factories.site("Florida")


def event(uid: str = "a", *, hour: int = 8, place: str = "Florida", more: str = "") -> str:
    return (
        f"UID:{uid}\nSUMMARY:new disks\nLOCATION:{place}\n"
        f"DTSTART:20261201T{hour:02}0000Z\nDTEND:20261201T{hour + 2:02}0000Z\n{more}"
    )


def imported(user: User, *events: str, options: ImportOptions = OPTIONS) -> DowntimePlan:
    content, actor = calendar(*events).encode(), Actor.person(user)
    plan = preview_downtimes(content, options, actor=actor, now=NOW)
    done = import_downtimes(
        content, options, token=plan.token, actor=actor, reason="as planned", now=NOW
    )
    assert done == plan
    return done


def outcomes(plan: DowntimePlan) -> list[str]:
    return [str(step.outcome) for step in plan.steps]


def test_a_preview_stores_nothing_and_the_import_what_it_showed(site: Site, sam: User) -> None:
    content, actor = calendar(event(), event("b", hour=12)).encode(), Actor.person(sam)

    plan = preview_downtimes(content, OPTIONS, actor=actor, now=NOW)
    assert outcomes(plan) == ["added", "added"]
    assert not Downtime.objects.exists()
    assert not SiteEvent.objects.filter(event="add downtime").exists()

    import_downtimes(content, OPTIONS, token=plan.token, actor=actor, reason="as planned", now=NOW)
    stored = Downtime.objects.get(uid="a")
    assert (stored.site, stored.source, stored.reason) == (site, "team-calendar", "new disks")
    assert stored.author == "sam"
    entry = AuditEntry.objects.get(action="import downtimes")
    assert (entry.reason, entry.facts["added"]) == ("as planned", 2)
    assert AuditEntry.objects.filter(action="add downtime").count() == 2


def test_a_second_import_changes_and_never_doubles(site: Site, sam: User) -> None:
    imported(sam, event())

    assert outcomes(imported(sam, event())) == ["unchanged"]
    assert outcomes(imported(sam, event(hour=10, more="SEQUENCE:1"))) == ["changed"]
    # An older version that comes late.
    assert outcomes(imported(sam, event(hour=9))) == ["skipped"]
    downtime = Downtime.objects.get()
    assert (downtime.start.hour, downtime.sequence) == (10, 1)


def test_a_downtime_that_was_over_is_prolonged_by_its_source(site: Site, sam: User) -> None:
    imported(sam, event())
    later = NOW + timedelta(days=8)
    content, actor = calendar(event().replace("DTEND:20261201", "DTEND:20261210")).encode(), sam

    plan = preview_downtimes(content, OPTIONS, actor=Actor.person(actor), now=later)

    assert outcomes(plan) == ["changed"]


def test_a_cancelled_event_cancels_its_downtime_for_good(site: Site, sam: User) -> None:
    assert outcomes(imported(sam, event(more="STATUS:CANCELLED"))) == ["skipped"]
    imported(sam, event())

    assert outcomes(imported(sam, event(more="STATUS:CANCELLED"))) == ["cancelled"]
    downtime = Downtime.objects.get()
    assert downtime.cancelled_by == "sam"
    assert outcomes(imported(sam, event())) == ["skipped"]


@pytest.mark.parametrize("is_complete", [False, True])
def test_what_is_no_outage_any_more_is_cancelled(
    site: Site, sam: User, *, is_complete: bool
) -> None:
    options = replace(OPTIONS, is_complete=is_complete)
    up = event(more="TRANSP:TRANSPARENT")
    assert outcomes(imported(sam, up, options=options)) == ["skipped"]
    imported(sam, event())

    assert outcomes(imported(sam, up, options=options)) == ["cancelled"]
    assert Downtime.objects.get().cancelled_by == "sam"
    assert outcomes(imported(sam, up, options=options)) == ["skipped"]


def test_what_is_no_outage_any_more_but_was_changed_by_hand_stays(site: Site, sam: User) -> None:
    imported(sam, event())
    downtime = Downtime.objects.get()
    terms = replace(terms_of(downtime), reason="longer than planned")
    change_downtime(downtime.pk, terms=terms, actor=Actor.person(sam), now=NOW)

    assert outcomes(imported(sam, event(more="TRANSP:TRANSPARENT"))) == ["skipped"]
    assert Downtime.objects.get().cancelled_at is None


def test_one_place_of_a_site_that_stays_up_cancels_no_outage_of_another(
    site: Site, sam: User
) -> None:
    options = replace(OPTIONS, sites={"ce1": "Florida", "ce2": "Florida"})
    document = "<results>{}{}</results>".format(
        downtime(HOSTED_BY="", HOSTNAME="ce1", SEVERITY="WARNING"),
        downtime(HOSTED_BY="", HOSTNAME="ce2"),
    ).encode()
    actor = Actor.person(sam)

    plan = preview_downtimes(document, options, actor=actor, now=NOW)
    assert outcomes(plan) == ["added"]
    import_downtimes(document, options, token=plan.token, actor=actor, reason="x", now=NOW)
    assert outcomes(preview_downtimes(document, options, actor=actor, now=NOW)) == ["unchanged"]


def test_what_a_person_changed_is_not_overwritten_unless_it_is_asked_for(
    site: Site, sam: User
) -> None:
    imported(sam, event())
    downtime = Downtime.objects.get()
    terms = replace(terms_of(downtime), reason="longer than planned")
    change_downtime(downtime.pk, terms=terms, actor=Actor.person(sam), now=NOW)

    [step] = imported(sam, event(hour=10)).steps
    assert (step.outcome, "by hand" in step.note) == ("skipped", True)
    assert Downtime.objects.get().reason == "longer than planned"

    forced = replace(OPTIONS, overwrites=True)
    assert outcomes(imported(sam, event(hour=10), options=forced)) == ["changed"]
    assert outcomes(imported(sam, event(hour=10))) == ["unchanged"]


def test_what_a_person_cancelled_stays_cancelled(site: Site, sam: User) -> None:
    imported(sam, event())
    cancel_downtimes(
        [Downtime.objects.get().pk], actor=Actor.person(sam), now=NOW, reason="not needed"
    )

    assert outcomes(imported(sam, event())) == ["skipped"]


def test_a_complete_document_cancels_what_its_source_has_no_more(site: Site, sam: User) -> None:
    imported(sam, event(), event("b", hour=12))
    complete = replace(OPTIONS, is_complete=True)

    assert outcomes(imported(sam, event("b", hour=12))) == ["unchanged"]
    plan = imported(sam, event("b", hour=12), options=complete)
    assert sorted(outcomes(plan)) == ["cancelled", "unchanged"]
    assert Downtime.objects.get(uid="a").cancelled_at is not None
    # Downtimes of other sources, and those that people entered, are left alone.
    other = replace(complete, source="another")
    assert outcomes(imported(sam, options=other)) == []


def test_places_are_named_as_the_source_names_them(site: Site, sam: User) -> None:
    plan = imported(
        sam, event(place="florida COMPUTING"), event("b", place="Nowhere"), event("c", place="")
    )
    assert [(step.site, str(step.outcome)) for step in plan.steps] == [
        ("Florida", "added"), ("", "skipped"), ("", "skipped"),
    ]  # fmt: skip

    default = replace(OPTIONS, default_site="Florida")
    assert outcomes(imported(sam, event("c", place=""), options=default)) == ["added"]


def test_gocdb_is_read_too_and_one_page_of_several_cancels_nothing(site: Site, sam: User) -> None:
    page = f'<results page="1" next="2">{downtime(HOSTED_BY="Florida")}</results>'.encode()

    plan = preview_downtimes(page, OPTIONS, actor=Actor.person(sam), now=NOW)

    assert outcomes(plan) == ["added"]
    complete = replace(OPTIONS, is_complete=True)
    with pytest.raises(InvalidInput):
        preview_downtimes(page, complete, actor=Actor.person(sam), now=NOW)


def test_an_administrator_imports_for_the_own_sites_only(site: Site, alice: User) -> None:
    people = factories.people()
    save_site(site, actor=factories.SYSTEM, administrators=[people.tina])
    factories.site("Caltech")

    plan = imported(people.tina, event(), event("b", place="Caltech"))
    assert outcomes(plan) == ["added", "skipped"]
    with pytest.raises(NotPermitted):
        imported(alice, event())


def test_a_change_since_the_preview_stores_nothing(site: Site, sam: User) -> None:
    content, actor = calendar(event()).encode(), Actor.person(sam)
    plan = preview_downtimes(content, OPTIONS, actor=actor, now=NOW)
    imported(sam, event())

    with pytest.raises(DowntimePlanChanged) as refused:
        import_downtimes(content, OPTIONS, token=plan.token, actor=actor, reason="x", now=NOW)
    assert outcomes(refused.value.plan) == ["unchanged"]
    with pytest.raises(ReasonRequired):
        import_downtimes(content, OPTIONS, token=plan.token, actor=actor, reason=" ", now=NOW)


def test_each_place_of_an_entry_counts_towards_the_bound(site: Site, sam: User) -> None:
    places = ",".join(f"place {number}" for number in range(MAX_PLACES))
    events = [event(str(number), place=places) for number in range(MAX_ENTRIES // MAX_PLACES)]
    actor = Actor.person(sam)

    plan = preview_downtimes(calendar(*events).encode(), OPTIONS, actor=actor, now=NOW)
    assert len(plan.steps) == MAX_ENTRIES
    with pytest.raises(InvalidInput):
        preview_downtimes(calendar(*events, event()).encode(), OPTIONS, actor=actor, now=NOW)


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"x" * (MAX_BYTES + 1), TooLarge),
        (b"\xff\xfe", InvalidInput),
        (b"hello", InvalidInput),
        (calendar(event(place="\x00")).encode(), InvalidInput),
    ],
    ids=["too large", "not UTF-8", "neither", "code 0"],
)
def test_other_documents_are_refused(
    site: Site, sam: User, content: bytes, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        preview_downtimes(content, OPTIONS, actor=Actor.person(sam), now=NOW)
    assert not Downtime.objects.exists()
