"""Explain page: why something does not run, and what would help."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import text_of
from tests.query_counts import statements_of
from wms.core.actors import Actor
from wms.dags.models import Dag
from wms.dags.negotiation.requests import loads_by_site
from wms.dags.services.dags import rematch_dags
from wms.dags.submission.submit import DagSubmission, submit_dag
from wms.jobs.models import Job
from wms.sites.ads import publish_ads
from wms.sites.services import ban_site
from wms.taskqueues.models import TaskQueue

ADDRESS = reverse("web:explain")
WHAT_IF = reverse("web:what-if")
GREEDY = '+Need = 16384\nrequirements = TARGET.Memory >= Need && TARGET.Arch == "x86_64"'


def _submit(people: SimpleNamespace, description: str, name: str = "greedy.dag") -> Dag:
    files = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}
    submission = DagSubmission(
        dag_name=name,
        dag_text=factories.dag_text(1),
        files={path: io.BytesIO(data) for path, data in files.items()},
        description_text=f"{description}\nqueue\n",
        description_name="whole.sub",
    )
    return submit_dag(submission, owner=people.alice, actor=Actor.person(people.alice))


def _sites(**memory: int) -> None:
    for name, megabytes in memory.items():
        factories.site(name, attributes=f'Memory = {megabytes}\nArch = "x86_64"')
    publish_ads(loads_by_site(), now=timezone.now())


def _page(client: Client, expected: int = 200, **query: object) -> str:
    is_what_if = any(name.endswith("change") for name in query)
    answer = client.get(WHAT_IF if is_what_if else ADDRESS, query)
    assert answer.status_code == expected
    return " ".join(answer.content.decode().split())


def test_a_node_that_no_queue_can_run_is_named_with_its_need(
    alice: Client, people: SimpleNamespace
) -> None:
    site = factories.site("Small")
    site.queues.update(memory_mb=8192)
    dag = factories.dag(people.alice)
    need = {"node_needs": [{"memory_mb": 16384}], "need_nodes": ["sim<1>"]}
    Dag.objects.filter(pk=dag.pk).update(**need)
    publish_ads(loads_by_site(), now=timezone.now())

    page = _page(alice, dag=dag.pk)

    assert '<h2 id="verdict">Never</h2>' in page
    assert '<h2 id="unmet-title">Nodes that cannot run</h2>' in page
    assert "<code>sim&lt;1&gt;</code>" in page
    assert "16384 MB of memory, the largest queue has 8192 MB" in page
    assert "Cannot run a node" in page
    assert 'id="needs-of-nodes"' in page


def test_a_dag_that_no_site_can_take_is_told_the_nearest_miss(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Large=12288, Small=4096)
    dag = _submit(people, GREEDY)

    page = _page(alice, dag=dag.pk)

    assert '<h2 id="verdict">Never</h2>' in page
    assert "2 sites" in page
    assert "<b>0</b> of 2" in page
    assert page.count("data-ends-all") == 1
    assert "<code>Need = 16384</code>: <b>0</b> of 2" in page
    assert "<code>Need = 12288</code>: <b>1</b>" in page
    assert "<code>Need = 4096</code>: <b>2</b>" in page
    assert f'href="{WHAT_IF}?dag={dag.pk}&amp;change=Need%20%3D%2012288"' in page
    assert "<b>alice</b>" in page


def test_when_no_single_change_is_enough_the_page_says_so(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Small=4096)
    dag = _submit(
        people, '+Need = 9000\n+Cpu = "x"\nrequirements = TARGET.Memory >= Need && my.Cpu'
    )
    other = _submit(people, "requirements = TARGET.Memory == 1 && TARGET.Arch == Memory")

    assert 'id="no-single-change"' in _page(alice, dag=other.pk)
    assert '<h2 id="verdict">Never</h2>' in _page(alice, dag=dag.pk)


def test_what_if_shows_before_and_after_and_writes_nothing(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Large=12288, Small=4096)
    dag = _submit(people, GREEDY)
    query = {"dag": dag.pk, "change": "Need = 12000", "at": "Small", "site_change": "Memory = 1"}

    statements = statements_of(lambda: alice.get(WHAT_IF, query))
    page = _page(alice, **query)

    reads = ("SELECT", "(SELECT", "DECLARE")
    assert [sql for sql in statements if not sql.startswith(reads)] == []
    assert '<td class="num">0 of 2</td>' in page
    assert "<b>1</b> of 2</td></tr>" in page
    assert "go to Large" in page
    assert 'id="after-title"' in page


def test_a_posted_what_if_leads_to_an_address_that_can_be_kept(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Large=12288)
    dag = _submit(people, GREEDY)

    short = alice.post(WHAT_IF, {"dag": dag.pk, "change": "Need = 12000"})
    long = alice.post(WHAT_IF, {"dag": dag.pk, "change": "Need = 12000\n" + "# more\n" * 600})

    assert short["Location"] == f"{WHAT_IF}?dag={dag.pk}&change=Need+%3D+12000"
    assert (
        alice.get(short["Location"].replace("what-if", "explain"))["Location"] == short["Location"]
    )
    assert long.status_code == 200
    assert "Would match now" in long.content.decode()


@pytest.mark.slow
def test_faults_of_a_what_if_stand_at_their_field_with_the_line(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Large=12288)
    dag = _submit(people, GREEDY)

    page = _page(
        alice,
        400,
        dag=dag.pk,
        change="# so\nNeed = = 1\nNeed\nArch =\narch = 2",
        site_change="Memory = (",
    )
    nowhere = _page(alice, 400, dag=dag.pk, at="Nowhere", site_change="Memory = 1")

    of_dag = text_of(page, "fault-change")
    assert re.findall(r"Line (\d)", of_dag) == ["2", "3", "5"]
    assert ("Need:" in of_dag, "arch" in of_dag) == (True, True)
    assert text_of(page, "fault-site-change").startswith("Line 1: Memory:")
    assert 'id="fault-at"' in page
    assert '<h2 id="verdict">Never</h2>' in page
    assert "Nowhere" in text_of(nowhere, "fault-at")


@pytest.mark.parametrize(
    "ad",
    [
        "Need = 16384\nRequirements = TARGET.Memory >= Need",
        "[ Need = 16384; Requirements = TARGET.Memory >= Need ]",
        '{"Need": 16384, "Requirements": "/Expr(TARGET.Memory >= Need)/"}',
    ],
)
def test_a_pasted_ad_is_explained_in_every_format_and_can_be_tried(alice: Client, ad: str) -> None:
    _sites(Large=12288)

    page = " ".join(alice.post(ADDRESS, {"ad": ad}).content.decode().split())
    trial = {"ad": ad, "change": "Need = 1", "attempt": "Need = 12288"}
    tried = alice.post(WHAT_IF, trial, follow=True)

    assert "A pasted ad" in page
    assert 'form="what-if" name="attempt" value="Need = 12288"' in page
    assert "go to Large" in tried.content.decode()
    assert ">Need = 12288</textarea>" in tried.content.decode()


def test_a_faulty_ad_comes_back_with_its_line(alice: Client) -> None:
    answer = alice.post(ADDRESS, {"ad": "Need = 1\nRequirements = ("})

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Line 2: " in page
    assert "Requirements = (</textarea>" in page


@pytest.mark.slow
def test_closed_and_avoided_sites_tell_why(alice: Client, people: SimpleNamespace) -> None:
    _sites(Here=4096)
    dag = _submit(people, "requirements = TARGET.Memory >= 1")
    factories.turn()
    rematch_dags([dag.pk], actor=Actor.person(people.alice), reason="slow", avoid_s=3600)

    avoided = _page(alice, dag=dag.pk)
    ban_site("Here", actor=Actor.person(people.sam), reason="the roof <b>leaks")
    closed = _page(alice, dag=dag.pk)

    assert "Avoided" in avoided
    assert "until 20" in avoided
    assert "UTC: slow</span>" in avoided
    assert "Here: slow" in avoided
    assert '<h2 id="verdict">Not now</h2>' in closed
    assert "the roof &lt;b&gt;leaks" in closed
    assert "banned by sam" in closed


def test_what_nobody_defines_is_named_with_what_may_be_meant(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Here=4096)
    dag = _submit(people, "requirements = TARGET.Memroy >= 1")

    page = _page(alice, dag=dag.pk)

    assert "<code>memroy</code>" in page
    assert "<code>Memory</code>" in page


def test_the_other_side_is_told_with_names(alice: Client, people: SimpleNamespace) -> None:
    site = factories.site("Picky")
    type(site).objects.update(requirements="TARGET.WantIt =?= true")
    publish_ads({}, now=timezone.now())
    dag = _submit(people, "+Elsewhere = 1")

    page = _page(alice, dag=dag.pk)

    assert "<code>TARGET.WantIt is true</code>" in page
    assert "Refuse the DAG" in page
    assert '<code>WantIt</code> <span class="quiet">' in page
    assert "<code>WantIt = true</code>: <b>1</b>" in page


@pytest.mark.slow
def test_a_running_dag_has_a_site_and_an_ended_one_is_over(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    assert "runs at UW" in _page(alice, dag=dag.pk)

    alice.post(reverse("web:steer", args=[dag.pk, "remove"]), {"reason": "no use"})

    assert "Has ended" in _page(alice, dag=dag.pk)


def test_a_job_and_its_task_queue_tell_which_queues_can_run_it(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.site("Other")
    dag = factories.running_dag(people.alice)
    job, queue = Job.objects.filter(state="waiting")[0], TaskQueue.objects.get()

    of_job, of_queue = _page(alice, job=job.pk), _page(alice, task_queue=queue.pk)

    assert "Waiting its turn" in of_job
    assert f'href="{reverse("web:task-queue", args=[queue.pk])}"' in of_job
    assert f'href="{ADDRESS}?dag={dag.pk}"' in of_job
    assert f'TaskQueue <span class="number">{queue.pk}</span>' in of_queue
    assert "2 jobs wait." in of_queue


def test_a_site_tells_which_idle_dags_it_would_take(alice: Client, people: SimpleNamespace) -> None:
    _sites(Small=4096)
    _submit(people, GREEDY)
    _submit(people, "requirements = true", name="modest.dag")

    page = _page(alice, site="Small")
    after = _page(alice, site="Small", site_change="Memory = 20000")

    assert text_of(page, "idle-dags").startswith("2 ")
    assert page.count('<p class="stand"><b>1</b>') == 2
    assert 'id="after-title"' in after
    assert '<td class="num">1</td><td class="num"><b>2</b></td>' in after


def test_without_a_question_the_page_offers_what_waits(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.running_dag(people.alice, name="busy.dag")
    dag = _submit(people, GREEDY)
    factories.turn()

    page = _page(alice)

    assert f'href="?dag={dag.pk}"' in page
    assert f'href="?task_queue={TaskQueue.objects.get().pk}"' in page
    assert '<option value="UW">' in page


@pytest.mark.parametrize(
    ("query", "status", "fault"),
    [
        ({"dag": "seven"}, 400, "Give the number of the DAG."),
        ({"dag": "0"}, 400, "Give the number of the DAG."),
        ({"job": "9" * 30}, 400, "Give the number of the job."),
        ({"dag": "1", "site": "UW"}, 400, "Ask about one thing at a time."),
        ({"dag": "987654"}, 404, "There is no DAG 987654"),
        ({"job": "987654"}, 404, "There is no job 987654"),
        ({"task_queue": "987654"}, 404, "There is no TaskQueue 987654"),
        ({"site": "Nowhere"}, 404, "There is no site &#x27;Nowhere&#x27;"),
    ],
)
def test_a_question_at_fault_comes_back_with_its_field(
    alice: Client, query: dict[str, str], status: int, fault: str
) -> None:
    page = _page(alice, status, **query)

    assert fault in page
    assert 'aria-invalid="true"' in page


def test_the_pages_of_what_waits_lead_to_the_explanation(
    alice: Client, people: SimpleNamespace
) -> None:
    factories.running_dag(people.alice)
    job, dag = Job.objects.filter(state="waiting")[0], _submit(people, GREEDY)
    factories.turn()

    of_dag = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    of_job = alice.get(reverse("web:job", args=[job.pk])).content.decode()
    of_site = alice.get(reverse("web:site", args=["UW"])).content.decode()

    assert f'href="{ADDRESS}?dag={dag.pk}"' in of_dag
    assert f'href="{ADDRESS}?job={job.pk}"' in of_job
    assert f'href="{ADDRESS}?site=UW"' in of_site


@pytest.mark.slow
def test_many_sites_and_dags_take_no_more_queries_and_long_lists_are_cut(
    alice: Client, people: SimpleNamespace
) -> None:
    _sites(Here=4096)
    dag = _submit(people, GREEDY)
    few = statements_of(lambda: alice.get(ADDRESS, {"dag": dag.pk}))

    _sites(**{f"Site{number}": 2048 for number in range(60)})
    for number in range(5):
        _submit(people, GREEDY, name=f"more{number}.dag")
    many = statements_of(lambda: alice.get(ADDRESS, {"dag": dag.pk}))

    assert len(many) == len(few)
    assert "and 37 more" in _page(alice, dag=dag.pk)
