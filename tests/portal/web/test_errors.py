"""Pages of failure groups and of the rules that group failures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from wms.core.actors import Actor
from wms.core.models import User
from wms.failures import grouping
from wms.failures.models import FailureGroup, FailureRule
from wms.failures.rules import rule_book
from wms.failures.services import mute_groups


@pytest.fixture
def people(db: None) -> Any:
    return factories.people()


def fail(owner: User, *, count: int, exit_code: int, site: str = "UW") -> FailureGroup:
    """Let jobs of a user fail at a site, and group the failures."""
    queue = factories.site(site).queues.get()
    worker = factories.pilot(queue)
    for _ in range(count):
        factories.job(owner)
        assert factories.run_job(worker, exit_code=exit_code) is not None
    grouping.run_cycle(timezone.now())
    return FailureGroup.objects.get(text=f"the payload ended with exit code {exit_code}")


def as_user(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_most_frequent_cause_comes_first(people: Any) -> None:
    rare, frequent = (
        fail(people.alice, count=1, exit_code=1),
        fail(people.alice, count=3, exit_code=2),
    )

    answer = as_user(people.vera).get(reverse("web:errors"))

    assert [line.hit.group.pk for line in answer.context["lines"]] == [frequent.pk, rare.pk]
    assert [line.hit.count for line in answer.context["lines"]] == [3, 1]


def test_causes_are_sorted_by_when_they_were_seen(people: Any) -> None:
    frequent, rare = (
        fail(people.alice, count=3, exit_code=2),
        fail(people.alice, count=1, exit_code=1),
    )
    client, address = as_user(people.vera), reverse("web:errors")

    latest = client.get(f"{address}?sort=-last")

    assert [line.hit.group.pk for line in latest.context["lines"]] == [rare.pk, frequent.pk]
    assert 'aria-sort="descending"><a class="sort" id="sort-last"' in latest.content.decode()
    fewest = client.get(f"{address}?sort=count").context["lines"]
    assert [line.hit.count for line in fewest] == [1, 3]
    assert "lines" not in client.get(f"{address}?sort=colour").context


@pytest.mark.slow
def test_the_count_of_a_group_is_the_number_of_failures_on_its_page(people: Any) -> None:
    group = fail(people.alice, count=3, exit_code=2)
    client = as_user(people.vera)

    for within in ("1h", "24h", "7d", "all"):
        listed = client.get(reverse("web:errors"), {"within": within}).context["lines"]
        shown = client.get(reverse("web:error", args=[group.pk]), {"within": within})
        assert listed[0].hit.count == shown.context["chosen"] == len(shown.context["lines"]) == 3


def test_the_jobs_of_a_group_are_those_of_its_list(people: Any) -> None:
    group = fail(people.alice, count=2, exit_code=2)
    fail(people.alice, count=1, exit_code=3)
    client = as_user(people.vera)

    page = client.get(reverse("web:error", args=[group.pk]))
    jobs = client.get(reverse("web:jobs"), {"failure": group.pk})

    assert page.context["jobs"] == 2
    assert f"{reverse('web:jobs')}?failure={group.pk}" in page.content.decode()
    wanted = set(group.failures.values_list("subject_id", flat=True))
    assert {int(pk) for pk in _job_links(jobs.content.decode())} == wanted


def _job_links(text: str) -> set[str]:

    return set(re.findall(r'href="/jobs/([0-9]+)/"', text))


def test_sites_and_causes_are_a_matrix_whose_sums_fit(people: Any) -> None:
    fail(people.alice, count=2, exit_code=1, site="UW")
    fail(people.alice, count=1, exit_code=1, site="CERN")
    fail(people.alice, count=1, exit_code=2, site="CERN")

    answer = as_user(people.vera).get(reverse("web:errors"))

    matrix = answer.context["matrix"]
    found = {row.site: (list(row.counts), row.total) for row in matrix.rows}
    assert found == {"UW": ([2, 0], 2), "CERN": ([1, 1], 2)}
    assert (list(matrix.totals), matrix.total) == ([3, 1], 4)


def test_causes_below_one_in_a_hundred_are_folded(people: Any) -> None:
    frequent = fail(people.alice, count=1, exit_code=1)
    fail(people.alice, count=1, exit_code=2)
    frequent.bins.update(count=1000)
    frequent.save()

    matrix = as_user(people.vera).get(reverse("web:errors")).context["matrix"]

    assert [group.pk for group in matrix.groups] == [frequent.pk]
    assert (matrix.other, matrix.other_groups) == (1, 1)


def test_a_site_narrows_counts_and_groups(people: Any) -> None:
    fail(people.alice, count=2, exit_code=1, site="UW")
    fail(people.alice, count=1, exit_code=2, site="CERN")

    answer = as_user(people.vera).get(reverse("web:errors"), {"site": "CERN"})

    assert [line.hit.count for line in answer.context["lines"]] == [1]


def test_facets_count_what_their_links_show(people: Any) -> None:
    muted = fail(people.alice, count=1, exit_code=1)
    fail(people.alice, count=1, exit_code=2)
    mute_groups([muted.pk], actor=Actor.person(people.sam), reason="known")
    client = as_user(people.vera)

    facets = client.get(reverse("web:errors")).context["facets"]

    assert {facet.state: facet.count for facet in facets if facet.count} == {
        "active": 1,
        "muted": 1,
    }
    for facet in facets:
        lines = client.get(reverse("web:errors") + facet.query).context["lines"]
        assert len(lines) == facet.count


@pytest.mark.parametrize(
    "query", [{"state": "lost"}, {"within": "3y"}, {"nonsense": "1"}, {"id": "x"}]
)
def test_a_filter_that_cannot_be_read_shows_why_and_no_list(
    people: Any, query: dict[str, str]
) -> None:
    fail(people.alice, count=1, exit_code=1)

    answer = as_user(people.vera).get(reverse("web:errors"), query)

    assert 'class="fault" role="alert"' in answer.content.decode()
    assert "lines" not in answer.context


def test_a_group_is_muted_with_a_reason_and_by_shifters_only(people: Any) -> None:
    group = fail(people.alice, count=1, exit_code=1)
    address = reverse("web:steer-error", args=[group.pk, "mute"])

    assert as_user(people.alice).post(address, {"reason": "mine"}).status_code == 403
    refused = as_user(people.sam).post(address, {"reason": ""})
    done = as_user(people.sam).post(address, {"reason": "known"}, follow=True)

    assert refused.status_code == 400
    assert "Give a reason" in refused.content.decode()
    assert f"Failure group {group.pk} is muted." in done.content.decode()
    group.refresh_from_db()
    assert (group.state, group.state_reason) == ("muted", "known")


def test_a_decision_that_the_state_forbids_says_so(people: Any) -> None:
    group = fail(people.alice, count=1, exit_code=1)

    answer = as_user(people.sam).post(
        reverse("web:steer-error", args=[group.pk, "reopen"]), {"reason": "look"}
    )

    assert answer.status_code == 409
    assert FailureGroup.objects.get().state == "active"


def test_a_category_is_assigned(people: Any) -> None:
    group = fail(people.alice, count=1, exit_code=1)

    as_user(people.sam).post(
        reverse("web:steer-error", args=[group.pk, "categorise"]),
        {"reason": "the catalogue", "category": "data"},
    )

    group.refresh_from_db()
    assert group.category == "data"


def form_of(rule: FailureRule, **changes: Any) -> dict[str, Any]:
    return {
        "position": rule.position, "name": rule.name, "pattern": rule.pattern,
        "placeholder": rule.placeholder, "keeps": "on" if rule.keeps else "",
        "note": rule.note, "is_enabled": "on", "version": 1, "action": "preview", **changes,
    }  # fmt: skip


def test_a_rule_is_tried_before_it_is_stored(people: Any) -> None:
    fail(people.alice, count=2, exit_code=1)
    rule = FailureRule.objects.get(name="Exit codes and signals")
    address = reverse("web:error-rule", args=[rule.pk])
    client = as_user(people.olga)

    tried = client.post(address, form_of(rule, is_enabled=""))
    assert tried.context["preview"].changed == 2
    assert FailureRule.objects.get(pk=rule.pk).is_enabled
    client.post(address, form_of(rule, is_enabled="", action="save"))

    assert not FailureRule.objects.get(pk=rule.pk).is_enabled
    assert 'id="regrouping"' in client.get(reverse("web:errors")).content.decode()
    grouping.run_cycle(timezone.now())
    assert FailureGroup.objects.get().text.endswith("exit code <n>")


def test_a_rule_that_cannot_be_read_is_refused_at_its_field_and_not_even_tried(people: Any) -> None:
    fail(people.alice, count=1, exit_code=1)
    rule = FailureRule.objects.get(name="Number")

    for action in ("preview", "save"):
        answer = as_user(people.olga).post(
            reverse("web:error-rule", args=[rule.pk]),
            form_of(rule, pattern="(a++)b", action=action),
        )
        assert answer.status_code == 400
        assert "++" in text_of(answer.content.decode(), "fault-pattern")


def test_rules_that_somebody_changed_meanwhile_are_not_overwritten(people: Any) -> None:
    fail(people.alice, count=1, exit_code=1)
    rule = FailureRule.objects.get(name="Number")
    address = reverse("web:error-rule", args=[rule.pk])
    client = as_user(people.olga)
    client.post(address, form_of(rule, placeholder="number", action="save"))

    late = client.post(address, form_of(rule, placeholder="digits", action="save"))
    gone = client.post(address, form_of(rule, action="delete"))

    assert (late.status_code, gone.status_code) == (409, 409)
    assert FailureRule.objects.get(pk=rule.pk).placeholder == "number"


def test_a_new_rule_is_made_and_removed_again(people: Any) -> None:
    fail(people.alice, count=1, exit_code=1)
    client = as_user(people.olga)
    fresh = FailureRule(position=5, name="Kittens", pattern="[0-9]+ kittens", placeholder="pets")

    client.post(reverse("web:new-error-rule"), form_of(fresh, action="save"))
    made = FailureRule.objects.get(name="Kittens")
    client.post(
        reverse("web:error-rule", args=[made.pk]),
        form_of(made, action="delete", version=rule_book().version),
    )

    assert not FailureRule.objects.filter(name="Kittens").exists()
