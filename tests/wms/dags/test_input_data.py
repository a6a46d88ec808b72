"""DAGs go to sites near the input data of their nodes, and follow when these change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from matching.negotiation.decision import Request
from matching.negotiation.node_fit import NeedCode, NodeFit, Unmet
from matching.negotiation.unmatched_reasons import Kind
from tests.factories import SYSTEM
from tests.matching.matchmaking import match as decided
from tests.matching.matchmaking import offer, request
from tests.wms.dags.driving import NOW, advance, claim_one, match, run_all, states
from tests.wms.dags.test_needs import sub
from tests.wms.placement.conftest import configure, pool  # noqa: F401 - fixtures
from tests.wms.placement.replicas import bring_near, lose, replica, storage
from wms.core.models import User
from wms.dags.negotiation import cycle as negotiation
from wms.dags.reading.input_sets import inputs_of_dag
from wms.dags.services.nodes import rerun_nodes
from wms.explain.answers import answer_for_dag, answer_for_job
from wms.jobs.input_data import refreshing
from wms.jobs.models import InputChange, InputSet, Job, ResolvedSet
from wms.placement import runner
from wms.placement.storages.services import StorageSpec, create_storage

pytestmark = pytest.mark.django_db
DATA = NeedCode.DATA
ONE = "JOB A step.sub"
TWO = "JOB A step.sub\nJOB B other.sub"
BY_JOB = {"description_text": "binding = job\n", "description_name": "dag.sub"}

Make = Callable[..., Any]


@pytest.fixture
def sites(make_site: Make) -> None:
    """Two sites with a storage near each; without any other reason all go to the first one."""
    for letter in "ab":
        make_site(f"site-{letter}", queue={"memory_mb": 8000})
        storage(f"se-{letter}", f"site-{letter}")


def wants(*names: str, file: str = "step.sub", more: str = "") -> dict[str, str]:
    """A description whose jobs fetch these files."""
    urls = ", ".join(f"lfn:{name}" for name in names)
    [text] = sub(f"transfer_input_files = {urls}", more).values()
    return {file: text}


def refresh() -> None:
    refreshing.run_cycle(timezone.now())


def test_a_dag_goes_to_a_site_near_its_input(sites: None, submit: Make, alice: User) -> None:
    replica(alice, "/x", "se-b")

    dag = match(submit(ONE, files=wants("/x")))

    assert dag.site.name == "site-b"
    assert claim_one("site-a") is None
    assert claim_one("site-b") is not None


def test_it_needs_a_site_near_the_inputs_of_all_of_its_nodes(
    sites: None, submit: Make, alice: User
) -> None:
    replica(alice, "/x", "se-a")
    replica(alice, "/y", "se-b")
    dag = match(submit(TWO, files={**wants("/x"), **wants("/y", file="other.sub")}))

    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    for fact in ("Node A: ", "lfn:/x is at se-a", "lfn:/y is at se-b"):
        assert fact in dag.unmatched_reason
    [unmet] = answer_for_dag(alice, dag.pk, now=NOW).explanation.unmet
    assert (unmet.node, unmet.code, unmet.sites) == ("A", NeedCode.DATA, ("site-a", "site-b"))
    [found] = inputs_of_dag(dag)
    assert (found.cause, found.sites) == ("apart", [])

    replica(alice, "/x", "se-b")
    refresh()
    assert match(dag).site.name == "site-b"


def test_one_without_a_replica_waits_for_it_and_says_so_at_its_submission(
    sites: None, submit: Make, alice: User
) -> None:
    replica(alice, "/x", "se-b")
    dag = submit(ONE, files=wants("/x"))
    lose("/x", "se-b")
    refresh()

    dag = match(dag)
    assert (dag.state, dag.unmatched_kind) == ("idle", Kind.NODES)
    assert "lfn:/x" in dag.unmatched_reason

    replica(alice, "/x", "se-b")
    refresh()
    assert match(dag).site.name == "site-b"


def test_a_storage_that_becomes_near_to_a_site_lets_the_dag_go_there(
    sites: None, submit: Make, make_site: Make, alice: User
) -> None:
    make_site("site-c", queue={"memory_mb": 100})
    storage("se-c", "site-c")
    replica(alice, "/x", "se-c")
    dag = match(submit(ONE, files=wants("/x", more="request_memory = 4000")))
    assert dag.state == "idle"

    bring_near("se-c", "site-b", "site-c")
    refresh()

    assert match(dag).site.name == "site-b"


def test_one_whose_nodes_may_fetch_from_afar_prefers_the_site_near_most_bytes(
    sites: None, submit: Make, alice: User
) -> None:
    replica(alice, "/x", "se-a", size_bytes=10)
    replica(alice, "/y", "se-b", size_bytes=90)
    anywhere = "data_access = anywhere"
    files = {
        **wants("/x", more=anywhere), **wants("/y", file="other.sub", more=anywhere)
    }  # fmt: skip

    dag = match(submit(TWO, files=files))

    assert dag.site.name == "site-b"
    assert claim_one("site-b") is not None
    [found] = inputs_of_dag(dag)
    assert (found.sites, found.tenths) == (None, {"site-a": 1, "site-b": 9})


def test_ranks_come_before_nearness_and_nearness_before_the_ranks_of_sites() -> None:
    sites = [
        offer(1, "s1", Speed="1", Rank="1"),
        offer(2, "s2", Speed="1", Rank="0"),
        offer(3, "s3", Speed="2", Rank="0"),
    ]
    near_2 = replace(request(), nearness=((2, 9),))
    ranked = replace(request(Rank="TARGET.Speed"), nearness=near_2.nearness)

    assert [each.site_id for each in decided([near_2], sites).matches] == [2]
    assert [each.site_id for each in decided([ranked], sites).matches] == [3]
    assert [each.site_id for each in decided([request()], sites).matches] == [1]


def test_nodes_that_are_done_want_nothing(sites: None, submit: Make, alice: User) -> None:
    replica(alice, "/x", "se-a")
    replica(alice, "/y", "se-b")
    files = {**wants("/x"), **wants("/y", file="other.sub")}

    assert match(submit(f"{TWO}\nDONE A", files=files)).site.name == "site-b"


def test_names_with_macros_of_nodes_count(sites: None, submit: Make, alice: User) -> None:
    replica(alice, "/run/7", "se-b")

    dag = submit(f'{ONE}\nVARS A run="7"', files=wants("/run/$(run)"))

    assert InputSet.objects.get(pk=dag.near_inputs_id).names == ["/run/7"]
    assert match(dag).site.name == "site-b"


def test_jobs_that_are_bound_singly_go_each_to_its_own_data(
    sites: None, submit: Make, alice: User
) -> None:
    replica(alice, "/x", "se-a")
    replica(alice, "/y", "se-b")
    files = {**wants("/x"), **wants("/y", file="other.sub")}

    dag = match(submit(TWO, files=files, **BY_JOB))

    assert (dag.state, dag.near_inputs_id) == ("running", None)
    for site, name in (("site-a", "A"), ("site-b", "B")):
        attempt = claim_one(site)
        assert attempt is not None
        assert attempt.job.name == name
        assert claim_one(site) is None


def test_a_job_of_a_dag_at_a_site_that_is_not_near_tells_so(
    sites: None, submit: Make, alice: User
) -> None:
    replica(alice, "/x", "se-a")
    match(submit(ONE, files=wants("/x")))
    lose("/x", "se-a")
    replica(alice, "/x", "se-b")
    refresh()

    answer = answer_for_job(alice, Job.objects.get().pk, now=NOW)

    assert answer.verdict == "not now"
    assert "site-a" in answer.summary
    assert "lfn:/x is at se-b" in answer.summary


def test_dags_with_inputs_near_the_same_sites_are_one_autocluster(
    sites: None, submit: Make, alice: User
) -> None:
    for name in ("/x", "/y"):
        replica(alice, name, "se-b")
        submit(ONE, files=wants(name))

    report = negotiation.run_cycle(NOW)

    assert (report["autoclusters"], report["bound"]) == (1, 2)


def test_a_file_that_a_data_node_places_is_read_near_its_storage(
    make_site: Make,
    submit: Make,
    alice: User,
    pool: Path,  # noqa: F811 - a fixture
) -> None:
    # Given: storage se-b near site-b alone, and a DAG that places its own input there.
    for letter in "ab":
        make_site(f"site-{letter}")
    create_storage(StorageSpec("se-b", [f"file://{pool}/"], ["site-b"]), actor=SYSTEM)
    ad = (
        '[dap_type = "transfer"; src_url = "file:in.txt"; dest_url = "lfn:/run/7"; '
        'dest_storage = "se-b"]'
    )
    text = "DATA stage stage.ad\nJOB A step.sub\nPARENT stage CHILD A"
    dag = match(submit(text, files={**wants("/run/7"), "stage.ad": ad, "in.txt": "data"}))

    # When: its DATA node has placed the file.
    assert dag.site.name == "site-b"
    runner.run_due()
    dag = advance(dag)

    # Then: the job of the next node waits for pilots near it, and no other one gets it.
    assert states(dag) == {"stage": "done", "A": "submitted"}
    assert (pool / "run" / "7").read_text() == "data"
    assert claim_one("site-a") is None
    assert claim_one("site-b") is not None


def test_equal_ads_whose_data_are_at_different_sites_get_these_sites() -> None:
    sites = [offer(1, "s1"), offer(2, "s2")]
    known = frozenset({1, 2})

    def tied(dag_id: int, site_id: int) -> Request:
        fit = NodeFit([frozenset({site_id})], known, lambda place, _: Unmet(place, DATA, "far"))
        return replace(request(dag_id), node_fit=fit, nodes=["A"])

    decision = decided([tied(1, 2), tied(2, 1), tied(3, 3)], sites)

    assert {each.dag_id: each.site_id for each in decision.matches} == {1: 2, 2: 1}
    assert decision.unmatched[3].kind is Kind.NODES


def an_hour_later() -> None:
    refreshing.run_cycle(timezone.now() + refreshing.RENEWED_AFTER + timedelta(seconds=1))
    refresh()


@pytest.fixture
def ended(sites: None, submit: Make, alice: User) -> Any:
    """A DAG that has ended an hour ago, and whose input was at site-a."""
    replica(alice, "/x", "se-a")
    dag = run_all(match(submit(ONE, files=wants("/x"))))
    assert dag.state == "completed"
    an_hour_later()
    return dag


def test_sets_of_dags_that_have_ended_are_renewed_and_told_no_more(ended: Any, alice: User) -> None:
    an_hour_later()
    replica(alice, "/x", "se-b")
    bring_near("se-b", "site-b")
    refreshing.tell_sets()

    assert not InputChange.objects.filter(input_set_id__isnull=False).exists()
    assert not ResolvedSet.objects.filter(input_set__is_of_dag=True).exists()
    assert inputs_of_dag(ended) == []


def place_of_row() -> str:
    """Where the table has the row of the set: elsewhere after each change of it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text FROM jobs_inputset")
        return str(cursor.fetchone()[0])


def test_sets_of_dags_that_go_on_are_renewed(sites: None, submit: Make, alice: User) -> None:
    replica(alice, "/x", "se-a")
    submit(ONE, files=wants("/x"))
    refresh()
    place, before = place_of_row(), ResolvedSet.objects.get().resolved_at

    an_hour_later()

    # Nothing is written to the row itself, and so to the index of its names.
    assert ResolvedSet.objects.get().resolved_at > before
    assert place_of_row() == place
    assert InputSet.objects.get().is_asleep is False


def test_a_dag_that_wants_what_one_that_has_ended_did_is_near_where_it_is_now(
    ended: Any, submit: Make, alice: User
) -> None:
    lose("/x", "se-a")
    replica(alice, "/x", "se-b")

    dag = submit(ONE, files=wants("/x"))

    assert dag.near_inputs_id != ended.near_inputs_id
    assert match(dag).site.name == "site-b"


def test_a_dag_that_is_reopened_follows_its_inputs_again(ended: Any, alice: User) -> None:
    lose("/x", "se-a")
    replica(alice, "/x", "se-b")
    refresh()

    rerun_nodes(ended.pk, ["A"], actor=SYSTEM, reason="test")
    refresh()
    assert inputs_of_dag(ended)[0].sites == ["site-b"]

    replica(alice, "/x", "se-a")
    refresh()
    assert inputs_of_dag(ended)[0].sites == ["site-a", "site-b"]
