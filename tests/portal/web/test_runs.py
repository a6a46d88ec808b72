"""Pages of runs: rescue, limits, exports, inner DAGs."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from tests import factories
from tests.portal.web.markup import text_of
from wms.dags.models import Dag, SharedLimit
from wms.dags.reading.run_selectors import outer_dags
from wms.dags.reading.selectors import find_dag
from wms.dags.services.shared_limits import save_shared_limit


@pytest.fixture
def failed(people: SimpleNamespace) -> Dag:
    """A DAG of two nodes in a chain, the first of which is done and the second failed."""
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    for exit_code in (0, 3):
        factories.run_job(pilot, exit_code=exit_code)
        factories.turn()
    dag.refresh_from_db()
    return dag


@pytest.mark.slow
def test_the_page_tells_how_a_dag_ended_and_leads_to_its_rescue(alice: Client, failed: Dag) -> None:
    address = reverse("web:dag", args=[failed.pk])

    page = alice.get(address).content.decode()

    assert "node failed" in page
    assert "exit code 1" in page
    assert "analysis.dag.rescue001" in alice.get(address, {"tab": "rescue"}).content.decode()
    assert reverse("web:rescue", args=[failed.pk]) in page


@pytest.mark.slow
def test_a_rescue_is_begun_from_what_is_chosen(alice: Client, failed: Dag) -> None:
    address = reverse("web:rescue", args=[failed.pk])

    page = alice.get(address)
    answer = alice.post(
        address, {"reason": "mended", "start": "newest", "option-max_jobs": "3"}, follow=True
    )

    assert [start.value for start in page.context["starts"]] == ["newest"]
    assert "1 done, 1 failed" in page.content.decode()
    new = Dag.objects.get(previous_run=failed)
    assert (new.rescue_number, new.done_count, new.options) == (1, 1, {"max_jobs": 3})
    assert answer.redirect_chain == [(reverse("web:dag", args=[new.pk]), 302)]
    older = alice.get(reverse("web:dag", args=[failed.pk])).content.decode()
    assert f'id="next-run-{new.pk}"' in older


@pytest.mark.slow
def test_a_further_run_afresh_does_everything_again(alice: Client, failed: Dag) -> None:
    address = reverse("web:rescue", args=[failed.pk])

    alice.post(address, {"reason": "all of it", "start": "afresh"})

    assert Dag.objects.get(previous_run=failed).done_count == 0


_REFUSED: tuple[tuple[dict[str, str], str], ...] = (
    ({}, "Give a reason"),
    ({"reason": "x", "start": "8"}, "there is no analysis.dag.rescue008"),
    ({"reason": "x", "start": "save:none.save"}, "none.save"),
    ({"reason": "x", "option-max_jobs": "many"}, "Enter a whole number"),
)


@pytest.mark.slow
def test_a_refused_rescue_comes_back_with_why(alice: Client, failed: Dag) -> None:
    for data, words in _REFUSED:
        answer = alice.post(reverse("web:rescue", args=[failed.pk]), data)

        assert answer.status_code == 400, data
        assert words in answer.content.decode(), data
    assert Dag.objects.count() == 1


def test_a_dag_that_goes_on_says_when_it_can_be_rescued(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)

    page = alice.get(reverse("web:rescue", args=[dag.pk])).content.decode()

    assert 'id="obstacle"' in page
    assert 'name="reason"' not in page


def test_limits_are_changed_and_only_what_differs_is_recorded(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)
    dag.nodes.update(category="big")
    address = reverse("web:dag-limits", args=[dag.pk])

    answer = alice.post(
        address,
        {"reason": "disk", "max_jobs": "4", "max_pre": "20", "new_category": "big",
         "new_limit": "2"},
    )  # fmt: skip

    assert answer.status_code == 302
    dag.refresh_from_db()
    assert (dag.options, dag.category_limits) == ({"max_jobs": 4}, {"big": 2})
    page = alice.get(address)
    assert "Category big" in page.content.decode()


_SENSELESS: tuple[tuple[dict[str, str], str], ...] = (
    ({"max_jobs": "4"}, "Give a reason"),
    ({"reason": "x"}, "nothing was changed"),
    ({"reason": "x", "max_jobs": "-1"}, "greater than or equal to 0"),
    ({"reason": "x", "new_category": "big"}, "give its limit"),
)


def test_limits_that_make_no_sense_are_refused_at_the_form(
    alice: Client, people: SimpleNamespace
) -> None:
    dag = factories.running_dag(people.alice)

    for data, words in _SENSELESS:
        answer = alice.post(reverse("web:dag-limits", args=[dag.pk]), data)

        assert answer.status_code == 400, data
        assert words in answer.content.decode(), data
    dag.refresh_from_db()
    assert dag.options == {}


def test_the_page_says_which_limit_keeps_nodes_back(alice: Client, people: SimpleNamespace) -> None:
    save_shared_limit(SharedLimit(owner=people.alice, max_jobs=1), actor=factories.SYSTEM)
    dag = factories.running_dag(people.alice, node_count=3)

    page = alice.get(reverse("web:dag", args=[dag.pk])).content.decode()

    assert text_of(page, "kept-back").startswith("2 ")
    assert "alice" in text_of(page, "kept-back")


def test_records_are_downloaded_and_not_shown(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.finish(factories.running_dag(people.alice, node_count=1))

    answer = alice.get(reverse("web:dag-export", args=[dag.pk, "eventlog"]))

    assert b"Job submitted" in b"".join(answer.streaming_content)
    assert answer["Content-Disposition"] == 'attachment; filename="analysis.dag.nodes.log"'
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_dag_is_halted_and_released(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice)

    alice.post(reverse("web:steer", args=[dag.pk, "halt"]), {"reason": "shift ends"})
    dag.refresh_from_db()
    assert dag.state == "halted"

    alice.post(reverse("web:steer", args=[dag.pk, "release"]), {"reason": ""})
    dag.refresh_from_db()
    assert dag.state == "running"


def test_a_dag_inside_of_another_leads_to_it_and_back(
    alice: Client, people: SimpleNamespace
) -> None:
    outer = factories.running_dag(people.alice, node_count=1)
    inner = factories.dag(people.alice, name="inner.dag")
    Dag.objects.filter(pk=inner.pk).update(parent_node=outer.nodes.get(), root=outer)

    of_inner = alice.get(reverse("web:dag", args=[inner.pk])).content.decode()
    of_outer = alice.get(reverse("web:dag", args=[outer.pk])).content.decode()

    assert f'id="outer-{outer.pk}"' in of_inner
    assert f'id="inner-{inner.pk}"' in of_outer
    found = alice.get(f"{reverse('web:dags')}?outer={outer.pk}").context["listing"].page.rows
    assert [dag.pk for dag in found] == [inner.pk]


@pytest.mark.slow
def test_however_deep_a_dag_is_inside_of_others_all_are_named_by_one_query(
    people: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    around = [factories.running_dag(people.alice, name=f"dag{n}", node_count=1) for n in range(4)]
    for outer, inner in pairwise(around):
        Dag.objects.filter(pk=inner.pk).update(parent_node=outer.nodes.get(), root=around[0])
    innermost = find_dag(people.alice, around[-1].pk)

    with django_assert_num_queries(1):
        found = outer_dags(innermost)

    assert [(dag.pk, dag.name) for dag in found] == [(d.pk, d.name) for d in around[:-1]]
