"""Saved filters and preferences: what is kept, for whom, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from portal.personal import services
from portal.personal.models import Preferences, SavedFilter
from portal.personal.selectors import find_filter, preferences_of, visible_filters
from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, TooMany
from wms.core.models import AuditEntry, User

FAILED = {"state": ["failed"]}


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


def save(user: User, name: str = "mine", **options: object) -> SavedFilter:
    options = {"parameters": FAILED, **options}
    return services.save_filter("jobs", name=name, actor=Actor.person(user), **options)


def audited() -> list[str]:
    return list(
        AuditEntry.objects.filter(action__contains="filter")
        .order_by("pk")
        .values_list("action", flat=True)
    )


def test_a_private_filter_is_seen_by_its_owner_alone(people: SimpleNamespace) -> None:
    saved = save(people.alice)

    assert list(visible_filters(people.alice)) == [saved]
    assert list(visible_filters(people.ada)) == []
    with pytest.raises(NotFound):
        find_filter(people.ada, saved.pk)
    assert audited() == []


def test_what_is_saved_is_the_filter_alone_and_the_same_name_replaces_it(
    people: SimpleNamespace,
) -> None:
    first = save(people.alice, "  last   night ", parameters={"state": ["failed", "failed"]})
    again = save(people.alice, "last night", parameters={"state": ["held"], "before": ["7"]})

    assert again.pk == first.pk
    assert SavedFilter.objects.get().parameters == {"state": ["held"]}


@pytest.mark.parametrize(
    ("name", "parameters", "field"),
    [
        (" ", FAILED, "name"),
        ("x" * 81, FAILED, "name"),
        ("fine", {}, "parameters"),
        ("fine", {"before": ["5"]}, "parameters"),
        ("fine", {"state": ["lost"]}, "state"),
        ("fine", {"colour": ["red"]}, "colour"),
    ],
)
def test_what_is_no_filter_is_not_saved(
    people: SimpleNamespace, name: str, parameters: dict, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        save(people.alice, name, parameters=parameters)

    assert refused.value.findings[0].field == field
    assert not SavedFilter.objects.exists()


def test_a_shared_filter_is_seen_by_all_and_its_changes_are_audited(
    people: SimpleNamespace,
) -> None:
    saved = save(people.alice, is_shared=True)

    assert list(visible_filters(people.vera)) == [saved]
    services.change_filter(saved.pk, name="ours", actor=Actor.person(people.alice))
    services.change_filter(saved.pk, is_shared=False, actor=Actor.person(people.alice))
    assert list(visible_filters(people.vera)) == []
    services.remove_filter(saved.pk, actor=Actor.person(people.alice))
    assert audited() == ["save-filter", "change-filter", "change-filter"]
    facts = AuditEntry.objects.filter(action="change-filter").order_by("pk")[0].facts
    assert facts == {"name": ["mine", "ours"]}


def test_a_viewer_keeps_filters_but_shares_none(people: SimpleNamespace) -> None:
    saved = save(people.vera)

    with pytest.raises(NotPermitted):
        save(people.vera, is_shared=True)
    with pytest.raises(NotPermitted):
        services.change_filter(saved.pk, is_shared=True, actor=Actor.person(people.vera))


def test_a_shared_filter_is_changed_by_its_owner_and_by_operators(people: SimpleNamespace) -> None:
    saved = save(people.alice, is_shared=True)

    with pytest.raises(NotPermitted, match="its owner may"):
        services.change_filter(saved.pk, name="no", actor=Actor.person(people.sam))
    with pytest.raises(NotPermitted):
        services.remove_filter(saved.pk, actor=Actor.person(people.bob))
    services.remove_filter(saved.pk, actor=Actor.person(people.olga))
    assert not SavedFilter.objects.exists()


def test_another_users_private_filter_does_not_exist(people: SimpleNamespace) -> None:
    saved = save(people.alice)

    with pytest.raises(NotFound):
        services.change_filter(saved.pk, name="no", actor=Actor.person(people.ada))
    with pytest.raises(NotFound):
        services.set_default_filter("jobs", saved.pk, actor=Actor.person(people.ada))


def test_two_filters_of_a_list_cannot_have_one_name(people: SimpleNamespace) -> None:
    save(people.alice, "one")
    other = save(people.alice, "two")

    with pytest.raises(Conflict, match="filter one "):
        services.change_filter(other.pk, name="one", actor=Actor.person(people.alice))


def test_nobody_keeps_more_filters_than_fit(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_FILTERS", 1)
    save(people.alice, "one")

    save(people.alice, "one", parameters={"state": ["held"]})
    with pytest.raises(TooMany):
        save(people.alice, "two")


def test_a_default_filter_belongs_to_its_list(people: SimpleNamespace) -> None:
    saved, actor = save(people.alice), Actor.person(people.alice)

    services.set_default_filter("jobs", saved.pk, actor=actor)
    assert Preferences.objects.get().default_filters == {"jobs": saved.pk}
    with pytest.raises(InvalidInput, match="another list"):
        services.set_default_filter("dags", saved.pk, actor=actor)
    services.set_default_filter("jobs", None, actor=actor)
    assert Preferences.objects.get().default_filters == {}


def test_columns_are_kept_in_the_order_of_the_list(people: SimpleNamespace) -> None:
    actor = Actor.person(people.alice)

    services.choose_columns("jobs", ["reason", "state"], actor=actor)
    assert Preferences.objects.get().columns == {"jobs": ["state", "reason"]}
    with pytest.raises(InvalidInput, match="no column colour"):
        services.choose_columns("jobs", ["colour"], actor=actor)
    services.choose_columns("jobs", [], actor=actor)
    assert Preferences.objects.get().columns == {}


def test_preferences_are_kept_and_others_stay_as_they_were(people: SimpleNamespace) -> None:
    actor = Actor.person(people.alice)

    services.save_preferences({"time_zone": "Europe/Berlin", "theme": "dark"}, actor=actor)
    services.save_preferences({"density": "dense", "has_shortcuts": False}, actor=actor)

    kept = preferences_of(User.objects.get(username="alice"))
    assert (kept.time_zone, kept.theme, kept.density) == ("Europe/Berlin", "dark", "dense")
    assert not kept.has_shortcuts
    assert preferences_of(people.bob).time_zone == "UTC"


@pytest.mark.parametrize(
    "changes",
    [
        {"time_zone": "Mars/Olympus"},
        {"time_zone": "../../etc/passwd"},
        {"theme": "pink"},
        {"density": ""},
        {"has_shortcuts": "maybe"},
        {"columns": {}},
    ],
)
def test_an_unknown_preference_is_refused_and_changes_nothing(
    people: SimpleNamespace, changes: dict
) -> None:
    with pytest.raises(InvalidInput) as refused:
        services.save_preferences({"theme": "dark", **changes}, actor=Actor.person(people.alice))

    assert refused.value.findings[0].field == next(iter(changes))
    assert not Preferences.objects.exists()
