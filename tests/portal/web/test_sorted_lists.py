"""Sorted lists on pages, in exports and in the API."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.lists.selection import all_shown
from portal.personal.models import SavedFilter
from tests import factories
from tests.portal.web.markup import text_of
from wms.jobs.models import Job

JOBS = reverse("web:jobs")


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def people(module_rows: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture(scope="module")
def jobs(people: SimpleNamespace) -> list[int]:
    """Sixty jobs, every third of priority 5; their ids in the order of falling priority."""
    factories.running_dag(people.alice, node_count=60)
    ids = list(Job.objects.order_by("-pk").values_list("pk", flat=True))
    Job.objects.filter(pk__in=ids[::3]).update(priority=5)
    return ids[::3] + [pk for pk in ids if pk not in ids[::3]]


def head(page: str, name: str) -> tuple[str, str]:
    """What the head of a column tells of its order, and where its link leads."""
    found = re.search(rf'<th([^>]*)><a class="sort" id="sort-{name}" href="([^"]*)"', page)
    assert found is not None
    return found[1], found[2].replace("&amp;", "&")


def test_the_head_of_a_column_sorts_and_turns_the_order_round(
    alice: Client, jobs: list[int]
) -> None:
    plain = alice.get(f"{JOBS}?owner=alice&before=999999999").content.decode()
    state, query = head(plain, "since")
    sorted_page = alice.get(JOBS + query).content.decode()

    assert "aria-sort" not in state
    assert query == "?owner=alice&sort=-since"
    state, query = head(sorted_page, "since")
    assert 'aria-sort="descending"' in state
    assert "#descending" in sorted_page
    assert query == "?owner=alice&sort=since"
    assert re.search(r'id="by--since" aria-current="true"', sorted_page)


def test_a_sorted_list_is_walked_forth_and_back_by_its_links(
    alice: Client, jobs: list[int]
) -> None:
    first = alice.get(f"{JOBS}?sort=-priority&state=waiting").context["listing"].page
    second = alice.get(JOBS + first.older).context["listing"].page
    again = alice.get(JOBS + second.newer).context["listing"].page

    assert [job.pk for job in [*first.rows, *second.rows]] == jobs
    assert [job.pk for job in again.rows] == jobs[:50]
    assert (first.newer, second.older, again.newer) == ("", "", "")


def test_filters_columns_files_and_saved_filters_keep_the_order(
    alice: Client, jobs: list[int]
) -> None:
    answer = alice.get(f"{JOBS}?owner=alice&sort=-priority")
    bar, listing = answer.context["bar"], answer.context["listing"]

    ways = [bar.clear, bar.chips[0].without, bar.chips[0].flipped, listing.facets[1].query]
    assert all("sort=-priority" in way for way in ways)
    assert ("sort", "-priority") in bar.hidden
    assert bar.address.endswith("sort=-priority")
    [text, document] = [alice.get(address) for _, address in bar.exports]
    rows = csv.DictReader(io.StringIO(b"".join(text.streaming_content).decode()))
    found = [(int(row["id"]), row["priority"]) for row in rows]
    assert [pk for pk, _ in found] == jobs
    assert [priority for _, priority in found] == ["5"] * 20 + ["1"] * 40
    assert "priority" in listing.shown
    assert b'"sort": "-priority"' in b"".join(document.streaming_content)
    saved = {"list": "jobs", "query": bar.query, "name": "urgent", "is_default": "on"}
    alice.post(reverse("web:save-filter"), saved)
    assert SavedFilter.objects.get().parameters == {"owner": ["alice"], "sort": ["-priority"]}
    assert "sort=-priority" in alice.get(JOBS)["Location"]


def test_what_is_selected_in_a_sorted_list_is_what_its_filter_means(
    alice: Client, people: SimpleNamespace, jobs: list[int]
) -> None:
    listing = alice.get(f"{JOBS}?owner=alice&sort=-priority").context["listing"]

    chosen = all_shown(listing.bulk.token, "jobs", people.alice)

    assert chosen.filters == {"owner": ["alice"]}
    assert {job.pk for job in chosen.rows} == set(jobs)


def test_an_order_that_there_is_not_is_told_and_no_list_is_shown(
    alice: Client, jobs: list[int]
) -> None:
    answer = alice.get(f"{JOBS}?sort=colour")

    page = answer.content.decode()
    assert "&#x27;colour&#x27;" in page
    assert answer.context["listing"].lines == ()


def test_a_list_that_is_sorted_in_part_says_so_on_the_page_and_in_the_file(
    alice: Client, jobs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("portal.lists.base_filter", "portal.web.lists.listing", "portal.lists.exports",
                   "portal.api.pagination"):  # fmt: skip
        monkeypatch.setattr(f"{module}.EXACT_UP_TO", 40)

    page = alice.get(f"{JOBS}?sort=-priority").content.decode()
    whole = alice.get(f"{JOBS}?sort=-since").content.decode()
    file = alice.get(reverse("api:list-export", args=["jobs", "csv"]), {"sort": "-priority"})
    refused = alice.get(reverse("api:jobs"), {"sort": "-priority"})

    assert "latest 40" in text_of(page, "partly-sorted")
    assert "partly-sorted" not in whole
    assert file["X-Is-Cut"] == "true"
    assert "sorted-among-latest-40" in file["Content-Disposition"]
    assert len(b"".join(file.streaming_content).splitlines()) == 41
    assert refused.status_code == 400
    assert "-id" in refused.json()["findings"][0]["message"]


@pytest.mark.parametrize("order", ["-priority", "since", "id"])
def test_the_api_has_the_same_orders_and_leads_forth_and_back(
    people: SimpleNamespace, jobs: list[int], order: str
) -> None:
    client = APIClient()
    client.force_login(people.vera)
    pages = [client.get(f"{reverse('api:jobs')}?sort={order}&page_size=25").json()]
    while address := pages[-1]["next"]:
        pages.append(client.get(address).json())
    back = [pages[-1]]
    while address := back[-1]["previous"]:
        back.append(client.get(address).json())

    expected = [job.pk for job in factories_order(people, order)]
    assert [job["id"] for page in pages for job in page["results"]] == expected
    assert [page["results"] for page in back] == [page["results"] for page in pages[::-1]]
    assert len(pages) == 3


def factories_order(people: SimpleNamespace, order: str) -> list[Job]:
    """All jobs as the database sorts them."""
    falls, column = order.startswith("-"), order.removeprefix("-").replace("since", "state_since")
    sign = "-" if falls else ""
    return list(Job.objects.order_by(f"{sign}{column}", f"{sign}pk"))


def test_a_cursor_of_another_order_is_refused_by_the_api(
    people: SimpleNamespace, jobs: list[int]
) -> None:
    client = APIClient()
    client.force_login(people.vera)

    answer = client.get(f"{reverse('api:jobs')}?sort=since&cursor=back:made-up")

    assert [finding["field"] for finding in answer.json()["findings"]] == ["cursor"]


def test_sites_are_sorted_by_what_they_do_and_walked_by_it(
    alice: Client, jobs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.lists.views._SITES_SHOWN", 2)
    sites = [factories.site(name) for name in ("B", "C", "A")]
    factories.pilot(sites[1].queues.get())
    address = reverse("web:sites")

    first = alice.get(f"{address}?sort=-running").context["listing"].page
    second = alice.get(address + first.older).context["listing"].page

    assert [line.name for line in [*first.rows, *second.rows]] == ["C", "A", "B", "UW"]
    assert (first.newer, second.older) == ("", "")
    assert "from" not in second.newer


def test_a_search_by_name_leads_to_all_names_that_begin_so(alice: Client, jobs: list[int]) -> None:
    bar = alice.get(f"{JOBS}?name=A1&sort=since").context["bar"]
    [(_, query)] = bar.wider

    page = alice.get(JOBS + query)

    assert query == "?begins=A1&sort=since"
    assert {line.job.name for line in page.context["listing"].lines} == {
        "A1", *(f"A1{number}" for number in range(10))
    }  # fmt: skip
    assert page.context["bar"].chips[0].flipped == ""
