"""What-if page: changes of DAGs, groups of jobs, sites and queues."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from tests.query_counts import statements_of
from wms.core.models import AuditEntry
from wms.dags.negotiation.requests import loads_by_site
from wms.jobs.models import Job
from wms.sites.ads import publish_ads
from wms.sites.models import Queue
from wms.taskqueues.models import TaskQueue

ADDRESS = reverse("web:what-if")


def _page(client: Client, expected: int = 200, **query: object) -> str:
    answer = client.get(ADDRESS, query)
    assert answer.status_code == expected
    return " ".join(answer.content.decode().split())


@pytest.fixture
def waiting(people: SimpleNamespace) -> TaskQueue:
    """Alice's two jobs, which wait."""
    factories.running_dag(people.alice)
    return TaskQueue.objects.get()


def test_the_form_takes_what_is_asked_about_with_its_changes(
    alice: Client, waiting: TaskQueue
) -> None:
    page = _page(alice)
    answer = alice.post(ADDRESS, {"task_queue": waiting.pk, "change": "memory_mb = 999999"})

    assert 'name="queue_change"' in page
    assert "at most 3 s" in page
    assert answer["Location"] == (f"{ADDRESS}?task_queue={waiting.pk}&change=memory_mb+%3D+999999")


def test_a_group_of_jobs_is_compared_before_and_after(alice: Client, waiting: TaskQueue) -> None:
    query = {"task_queue": waiting.pk, "change": "memory_mb = 999999"}

    statements = statements_of(lambda: alice.get(ADDRESS, query))
    page = _page(alice, **query)
    of_job = _page(alice, job=Job.objects.filter(state="waiting")[0].pk, change="cores = 99")

    reads = ("SELECT", "(SELECT", "DECLARE")
    assert [sql for sql in statements if not sql.strip().startswith(reads)] == []
    row = '<td class="num">1</td><td class="num"><b>0</b></td>'
    assert row in page
    assert row in of_job
    assert ">memory_mb = 999999</textarea>" in page


def test_what_queues_offer_is_tried_for_jobs_and_for_a_site(
    alice: Client, waiting: TaskQueue
) -> None:
    name = Queue.objects.get().name
    change = f"{name}.memory_mb = 1\n"
    Queue.objects.update(memory_mb=64_000)

    of_jobs = _page(
        alice, task_queue=waiting.pk, change="memory_mb = 100", at="UW", queue_change=change
    )
    of_site = _page(alice, site="UW", queue_change="tags = x\nrequired_tags = x")

    assert '<td class="num">1</td><td class="num"><b>0</b></td>' in of_jobs
    assert '</th><td class="num">2</td>' in of_site
    assert '<td class="num"><b>0</b></td>' in of_site
    assert Queue.objects.get().memory_mb == 64_000


def test_a_start_expression_of_a_site_is_compared(alice: Client, people: SimpleNamespace) -> None:
    factories.site("UW")
    factories.dag(people.alice, node_count=1)
    publish_ads(loads_by_site(), now=timezone.now())

    page = _page(alice, site="UW", site_change='Requirements = TARGET.Owner == "bob"')

    assert 'id="after-title"' in page
    assert "It refuses" in page


@pytest.mark.slow
def test_faults_stand_at_their_fields_with_the_line(alice: Client, waiting: TaskQueue) -> None:
    page = _page(
        alice, 400, task_queue=waiting.pk, change="cores = 2\ncores = 3\nnothing",
        at="UW", queue_change="cores\n",
    )  # fmt: skip
    unknown = _page(alice, 400, task_queue=waiting.pk, change="speed = 3")
    nowhere = _page(alice, 400, task_queue=waiting.pk, queue_change="cores = 3")
    lost = _page(alice, 400, task_queue=waiting.pk, at="Lost", queue_change="cores = 3")

    assert re.findall(r"Line (\d)", text_of(page, "fault-change")) == ["2", "3"]
    assert "cores" in text_of(page, "fault-change")
    assert text_of(page, "fault-queue-change").startswith("Line 1")
    assert "cpu_time_s" in text_of(unknown, "fault-change")
    assert 'id="fault-at"' in nowhere
    assert "Lost" in lost


@pytest.mark.parametrize(
    ("query", "status"), [({"dag": "x"}, 400), ({"dag": 987654}, 404), ({"site": "Lost"}, 404)]
)
def test_a_question_at_fault_comes_back_with_the_form(
    alice: Client, people: SimpleNamespace, query: dict[str, object], status: int
) -> None:
    page = _page(alice, status, change="Need = 3", **query)

    assert ">Need = 3</textarea>" in page
    assert 'aria-invalid="true"' in page


def test_it_leads_to_where_things_are_changed_and_changes_nothing(
    people: SimpleNamespace, waiting: TaskQueue
) -> None:
    pages = {}
    audited = AuditEntry.objects.count()
    for name in ("bob", "olga"):
        client = Client()
        client.force_login(getattr(people, name))
        pages[name] = _page(client, site="UW", site_change="MaxMatches = 9")

    assert f'href="{reverse("web:site", args=["UW"])}"' in pages["bob"]
    assert "apply-admin" not in pages["bob"]
    assert "changed by operators" in pages["bob"]
    assert 'id="apply-admin"' in pages["olga"]
    assert AuditEntry.objects.count() == audited


def test_an_ad_that_fits_into_an_address_can_be_sent_on(alice: Client) -> None:
    factories.site("UW")
    publish_ads({}, now=timezone.now())
    ad = {"ad": "Requirements = TARGET.Nothing", "change": "Requirements = true"}

    short = alice.post(ADDRESS, ad)
    long = alice.post(ADDRESS, ad | {"ad": ad["ad"] + "\n" + "# more\n" * 900})

    assert "go to UW" in alice.get(short["Location"]).content.decode()
    assert long.status_code == 200
