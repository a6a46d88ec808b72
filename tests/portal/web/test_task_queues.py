"""TaskQueue pages: list and detail."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from matching.task_queues.needs import Needs
from portal.web.matching import task_queue_views as task_queues
from tests import factories
from wms.accounting.models import AccountingGroup
from wms.accounting.services import save_group
from wms.core.database.counting import Count
from wms.taskqueues import priorities
from wms.taskqueues.models import TaskQueue
from wms.taskqueues.operations import Entry, enqueue, remove_empty, withdraw

ADDRESS = reverse("web:task-queues")
LIVE = {"headers": {"HX-Request": "true", "HX-Target": "live"}}


def _fill(owner: str, first_job: int, jobs: int = 1, *, priority: int = 1, **needs: object) -> int:
    """A TaskQueue with jobs of these ids."""
    wanted = Needs.of(owner, **needs)  # type: ignore[arg-type]
    enqueue([Entry(first_job + number, wanted, priority) for number in range(jobs)])
    return TaskQueue.objects.get(key=wanted.key()).pk


def _text(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def _listed(client: Client, query: str) -> list[int]:
    return [line.id for line in client.get(ADDRESS + query).context["listing"].lines]


def test_a_line_tells_what_waits_and_what_it_needs(alice: Client, people: SimpleNamespace) -> None:
    pk = _fill("bob", 1, 3, cores=2, max_cores=8, gpus=1, sites=["UW"], tags=["ssd"],
               requirements="Memory > 4000")  # fmt: skip
    priorities.recompute()

    page = _text(alice, ADDRESS)

    assert f'href="/taskqueues/{pk}/"' in page
    for need in ("2 to 8 cores", "1 GPU", "8 min 20 s", "at UW", "ssd", "Memory &gt; 4000"):
        assert need in page
    assert "<b>3</b>" in page
    assert ">100 %<" in page


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("?owner=bob", {2}),
        ("?group=physics", {3}),
        ("?site=UW", {1, 2, 4}),
        ("?site=T2_X", {1, 3, 4}),
        ("?platform=linux-x86_64", {1, 2, 3, 4}),
        ("?platform=linux-arm64", {1, 2, 3}),
        ("?tag=ssd", {2}),
        ("?job_type=User", {3}),
        ("?setup=test", {4}),
        ("?cpu_time_s=5000", {4}),
        ("?owner=alice&cpu_time_s=500", {1, 3}),
    ],
)
def test_the_filters_find_what_they_say(
    alice: Client, people: SimpleNamespace, query: str, jobs: set[int]
) -> None:
    made = {
        _fill("alice", 1): 1,
        _fill("bob", 2, tags=["ssd"], banned_sites=["T2_X"]): 2,
        _fill("alice", 3, owner_group="physics", sites=["T2_X"], job_type="User"): 3,
        _fill("alice", 4, setup="test", cpu_time_s=900, platforms=["linux-x86_64"]): 4,
    }

    listing = alice.get(ADDRESS + query).context["listing"]

    assert {made[line.id] for line in listing.lines} == jobs
    assert listing.chosen_total == Count(len(jobs))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?cpu_time_s=long", "CPU segment: Enter a number."),
        ("?sort=size", "Sort: This list cannot be sorted by"),
    ],
)
def test_a_filter_that_does_not_parse_shows_its_message_and_no_list(
    alice: Client, query: str, message: str
) -> None:
    page = _text(alice, ADDRESS + query)

    assert message in page
    assert "facets" not in page


def test_the_list_is_ordered_as_asked_for(alice: Client, people: SimpleNamespace) -> None:
    many = _fill("alice", 10, 5)
    urgent = _fill("alice", 20, 1, priority=10, cores=2)
    priorities.recompute()

    assert _listed(alice, "") == [many, urgent]
    assert _listed(alice, "?sort=-priority") == [urgent, many]
    assert _listed(alice, "?sort=priority") == [many, urgent]
    assert _listed(alice, "?sort=waiting") == [urgent, many]
    assert _listed(alice, "?sort=-oldest") == [urgent, many]
    assert _listed(alice, "?sort=oldest") == [many, urgent]


def test_the_pages_of_a_long_list_follow_each_other(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.matching.task_queue_views.PAGE_SIZE", 3)
    for number in range(5):
        _fill("alice", 1 + number, memory_mb=number)

    first = alice.get(f"{ADDRESS}?owner=alice&sort=oldest").context["listing"]
    second = alice.get(ADDRESS + first.page.older).context["listing"]

    ids = [line.id for line in [*first.lines, *second.lines]]
    assert len(set(ids)) == 5
    assert (first.page.newer, second.page.older, first.chosen_total) == ("", "", Count(5))
    assert "owner=alice" in second.page.newer
    assert "after" not in second.page.newer


@pytest.mark.parametrize(
    "after",
    [
        *("x", "5_x", "_", "1e400_5", "nan_1", "1_0", "999999999999999999_1"),
        *("0001-01-01T00:00:00%2B23:59_1", "9999-12-31T23:59:59-23:00_1", "2026-02-30T00:00Z_1"),
        *("2026-11-21T10:00:00_1", "0001-01-01T00:00:00Z_1", "2026-11-21T10:00:00%2B99:99_1"),
    ],
)
@pytest.mark.parametrize("order", ["waiting", "oldest", "priority"])
def test_a_made_up_place_in_the_list_does_no_harm(
    alice: Client, people: SimpleNamespace, after: str, order: str
) -> None:
    _fill("alice", 1)

    assert alice.get(f"{ADDRESS}?sort={order}&after={after}").status_code == 200


def test_a_null_character_in_a_filter_is_refused_with_a_message(alice: Client) -> None:
    answer = alice.get(f"{ADDRESS}?tag=a%00b")

    assert answer.status_code == 400
    assert "Null characters" in answer.content.decode()


def test_the_choices_of_segments_count_what_they_lead_to(
    alice: Client, people: SimpleNamespace
) -> None:
    _fill("alice", 1, cpu_time_s=10)
    _fill("alice", 2, cpu_time_s=10, cores=2)
    _fill("alice", 3, cpu_time_s=40_000)

    listing = alice.get(f"{ADDRESS}?owner=alice&cpu_time_s=500").context["listing"]

    short, long = listing.facets
    assert [(each.state, each.count) for each in listing.facets] == [(500, 2), (50_000, 1)]
    assert listing.total == Count(3)
    assert len(_listed(alice, listing.all_query)) == 3
    assert len(_listed(alice, long.query)) == 1
    assert len(_listed(alice, short.query)) == 3, "a chosen one is taken away by its link"
    assert [each.is_chosen for each in listing.facets] == [True, False]


def test_an_empty_list_says_what_a_task_queue_is(alice: Client) -> None:
    assert '-clear" href' not in _text(alice, ADDRESS)
    assert '-clear" href' in _text(alice, f"{ADDRESS}?owner=bob")


def test_the_page_of_one_tells_needs_jobs_and_where_it_can_run(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site("UW", queues=["short"])
    factories.site("Small", queues=["tiny"])
    job = factories.job(people.alice, name="fit")
    pk = TaskQueue.objects.get().pk
    _fill("alice", job.pk + 1, 2, priority=5)

    answer = alice.get(reverse("web:task-queue", args=[pk]))
    page = " ".join(answer.content.decode().split())

    assert answer.context["line"].waiting_jobs == 3
    assert [each.priority for each in answer.context["priorities"]] == [5, 1]
    assert [each.job and each.job.name for each in answer.context["oldest"]] == ["fit", None, None]
    assert answer.context["queues"].usable.total == 2
    assert "2 of 2 queues" in page
    assert "8 min 20 s" in page


def test_the_page_tells_which_queues_can_never_take_it_and_why(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site("UW", queues=["short"])
    pk = _fill("alice", 1, memory_mb=100_000)

    page = _text(alice, reverse("web:task-queue", args=[pk]))

    assert "100000 MB" in page
    assert "UW/short" in page


def test_the_page_tells_how_the_priority_came_about(alice: Client, people: SimpleNamespace) -> None:
    group = AccountingGroup(name="physics", share=600)
    save_group(group, actor=factories.SYSTEM)
    pk = _fill("alice", 1, owner_group="physics")
    _fill("bob", 2, owner_group="physics")
    priorities.recompute()

    page = _text(alice, reverse("web:task-queue", args=[pk]))

    assert all(fact in page for fact in ("<b>physics</b>", "<b>600</b>", "<b>2</b> users"))
    assert "<b>300</b> for alice" in page


def test_a_page_that_is_open_says_that_its_task_queue_has_gone(
    alice: Client, people: SimpleNamespace
) -> None:
    pk = _fill("alice", 1)
    address = reverse("web:task-queue", args=[pk])
    assert alice.get(address, **LIVE).status_code == 200
    withdraw([1])
    remove_empty()

    part, whole = alice.get(address, **LIVE), alice.get(address)

    assert part.status_code == 200
    assert f'href="{ADDRESS}"' in part.content.decode()
    assert whole.status_code == 404
    assert f'href="{ADDRESS}">All TaskQueues</a>' in whole.content.decode()


def test_a_very_long_list_is_refreshed_seldom(
    alice: Client, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_queues, "_MANY", 2)
    for number in range(3):
        _fill("alice" if number else "bob", 1 + number, memory_mb=number)

    assert alice.get(ADDRESS, **LIVE)["X-Refresh-Every"] == "30"
    assert alice.get(f"{ADDRESS}?owner=alice", **LIVE)["X-Refresh-Every"] == "5"
    assert 'data-every="30"' in _text(alice, ADDRESS)
