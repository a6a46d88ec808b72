"""Pages of clusters: submission, list, progress, actions and the ways to their jobs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.portal.web.markup import plain_text
from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, cycle, go_on, submit
from tests.wms.jobs.sandboxes.samples import ended_cluster
from wms.accounting.models import Quota
from wms.core.models import User
from wms.jobs import lifecycle
from wms.jobs.models import Cluster, Job, OutputLease
from wms.taskqueues.operations import withdraw

SUBMIT = "/jobs/submit/"


@pytest.fixture
def cluster(people: SimpleNamespace) -> Cluster:
    return go_on(submit(people.alice, f"{PLAIN}queue 6\n", options={"max_idle": 4}).cluster)


def fail_first(cluster: Cluster) -> Job:
    job = Job.objects.filter(cluster_id=cluster.pk).order_by("process")[0]
    withdraw([job.pk])
    lifecycle.apply("match", [job.pk], actor=SYSTEM, attempt_number=1)
    lifecycle.apply("fail", [job.pk], actor=SYSTEM, reason="exit code 1", cause="payload")
    cycle(cluster)
    return job


def steer(client: Client, cluster: Cluster, action: str, **given: Any) -> Any:
    return client.post(
        f"/clusters/{cluster.pk}/steer/{action}/", {"reason": "look", **given}, follow=True
    )


def test_one_command_is_submitted(alice: Client) -> None:
    answer = alice.post(
        SUBMIT,
        {"executable": "/bin/echo", "arguments": "$(Process)", "queue": "3", "labels": "a, b"},
    )

    cluster = Cluster.objects.get()
    assert answer.headers["Location"] == f"/clusters/{cluster.pk}/"
    assert (cluster.size, cluster.labels) == (3, ["a", "b"])


def test_a_description_with_files_is_submitted(alice: Client) -> None:
    table = SimpleUploadedFile("t.csv", b"1\n2\n")
    text = "executable = /bin/echo\narguments = $(n)\nqueue n from t.csv\n"

    alice.post(SUBMIT, {"description": text.replace("\n", "\r\n"), "files": [table]})

    assert Cluster.objects.get().size == 2


def test_a_description_may_be_a_file(alice: Client) -> None:
    file = SimpleUploadedFile("d.json", b'{"executable": "/bin/true", "queue": 4}')

    alice.post(SUBMIT, {"description_file": file})

    assert Cluster.objects.get().size == 4


def test_a_double_click_submits_once(alice: Client) -> None:
    for _ in range(2):
        alice.post(SUBMIT, {"executable": "/bin/true", "nonce": "abc"})

    assert Cluster.objects.count() == 1


def test_faults_are_quoted_with_their_line(alice: Client) -> None:
    answer = alice.post(SUBMIT, {"description": "executable = /bin/true\nrequest_cpus = many\n"})

    assert answer.status_code == 400
    [fault] = [each for each in answer.context["findings"] if each.line]
    assert fault.line == "request_cpus = many"
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"executable": "/bin/true", "description": "queue"},
        {"executable": "/bin/true", "queue": "many"},
        {"executable": "/bin/true", "deadline": "soon"},
        {"executable": "/bin/true", "group": "nobody"},
    ],
)
def test_what_cannot_be_read_is_refused(alice: Client, given: dict[str, str]) -> None:
    answer = alice.post(SUBMIT, given)

    assert answer.status_code == 400
    assert answer.context["findings_total"]
    assert not Cluster.objects.exists()


def test_a_check_tells_the_size_and_stores_nothing(alice: Client) -> None:
    answer = alice.post(SUBMIT, {"executable": "/bin/true", "queue": "7", "do": "check"})

    assert (answer.status_code, answer.context["size"]) == (200, 7)
    assert answer.context["warnings_total"]  # there is no queue
    assert not Cluster.objects.exists()


def test_a_full_quota_is_told_in_the_form(people: SimpleNamespace, alice: Client) -> None:
    Quota.objects.create(user=people.alice, max_waiting_jobs=5)

    answer = alice.post(SUBMIT, {"executable": "/bin/true", "queue": "6"})

    assert (answer.status_code, answer.context["findings_total"]) == (409, 1)


def test_a_full_quota_is_told_to_the_script_as_faults_are(
    people: SimpleNamespace, alice: Client
) -> None:
    Quota.objects.create(user=people.alice, max_waiting_jobs=5)

    answer = alice.post(
        SUBMIT, {"executable": "/bin/true", "queue": "6"}, headers={"HX-Request": "true"}
    )

    assert (answer.status_code, answer.context["findings_total"]) == (400, 1)
    assert b"<html" not in answer.content


def test_who_has_no_free_place_keeps_the_form(alice: Client, settings: Any) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_HEAVY_REQUESTS_PER_USER": 0}

    answer = alice.post(SUBMIT, {"executable": "/bin/true", "queue": "6"})

    assert (answer.status_code, answer.context["findings_total"]) == (429, 1)


def test_warnings_stay_on_the_page(people: SimpleNamespace, alice: Client) -> None:
    factories.site()
    alice.post(SUBMIT, {"executable": "/bin/true", "memory_mb": "9000000"})

    answer = alice.get(f"/clusters/{Cluster.objects.get().pk}/")

    assert answer.context["warnings"]


def test_viewers_see_the_form_closed(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    vera = browser_of(people.vera)

    assert vera.get(SUBMIT).context["may_submit"] is False
    assert vera.post(SUBMIT, {"executable": "/bin/true"}).status_code == 403


@pytest.mark.slow
def test_states_lead_to_the_jobs_in_them(alice: Client, cluster: Cluster) -> None:
    fail_first(cluster)
    context = alice.get(f"/clusters/{cluster.pk}/").context

    counts = {cell.state: cell.count for cell in context["cells"] if cell.count}
    assert sum(counts.values()) == 6
    assert counts["failed"] == 1
    for cell in context["cells"]:
        if cell.address:
            listing = alice.get(cell.address).context["listing"]
            assert listing.chosen_total.value == cell.count
    [cause] = context["causes"]
    assert len(alice.get(cause.address).context["listing"].lines) == cause.count == 1


def test_a_job_is_found_by_its_number(alice: Client, cluster: Cluster) -> None:
    job = Job.objects.get(cluster_id=cluster.pk, process=3)

    answer = alice.get(f"/clusters/{cluster.pk}/job/", {"process": "3"})

    assert answer.headers["Location"] == f"/jobs/{job.pk}/"
    assert alice.get(f"/jobs/{job.pk}/").context["cluster"] == cluster


@pytest.mark.parametrize("process", ["", "5", "x", "-1", "9" * 30])
def test_a_number_without_a_job_is_not_found(alice: Client, cluster: Cluster, process: str) -> None:
    answer = alice.get(f"/clusters/{cluster.pk}/job/", {"process": process})

    assert answer.status_code == 404


def test_a_cluster_is_changed_by_its_page(alice: Client, cluster: Cluster) -> None:
    steer(alice, cluster, "change", sites="UW, Kyoto", memory_mb="500")
    steer(alice, cluster, "limits", max_idle="9")
    steer(alice, cluster, "prioritise", priority="7")

    cluster.refresh_from_db()
    assert cluster.overrides == {"sites": ["Kyoto", "UW"], "memory_mb": 500, "priority": 7}
    assert cluster.max_idle == 9
    steer(alice, cluster, "change", sites="-")
    cluster.refresh_from_db()
    assert cluster.overrides["sites"] == []


def test_a_change_of_nothing_is_refused_at_its_form(alice: Client, cluster: Cluster) -> None:
    answer = steer(alice, cluster, "change")

    assert answer.status_code == 400
    assert [offer.error for offer in answer.context["offers"] if offer.error]


def test_failed_jobs_run_again_with_other_sites(alice: Client, cluster: Cluster) -> None:
    fail_first(cluster)

    answer = steer(alice, cluster, "rerun", banned_sites="UW", memory_mb="900")

    rerun = Cluster.objects.get(previous=cluster)
    assert answer.redirect_chain[-1][0] == f"/clusters/{rerun.pk}/"
    assert rerun.overrides == {"banned_sites": ["UW"], "memory_mb": 900}
    assert alice.get(f"/clusters/{cluster.pk}/").context["reruns"] == [rerun]


def test_only_owners_and_shifters_are_offered_actions(
    people: SimpleNamespace, browser_of: Callable[[User], Client], cluster: Cluster
) -> None:
    def offered(user: User) -> set[str]:
        context = browser_of(user).get(f"/clusters/{cluster.pk}/").context
        return {offer.action.name for offer in context["offers"]}

    assert offered(people.bob) == set()
    assert offered(people.alice) == offered(people.sam)
    assert offered(people.alice) == {
        "hold", "prioritise", "change", "limits", "label", "remove",
    }  # fmt: skip


def test_an_old_form_does_nothing(alice: Client, cluster: Cluster) -> None:
    steer(alice, cluster, "hold", seen="active")

    answer = steer(alice, cluster, "remove", seen="active")

    assert answer.status_code == 409
    cluster.refresh_from_db()
    assert cluster.state == "held"


def test_the_list_of_clusters_is_filtered_and_exported(alice: Client, cluster: Cluster) -> None:
    listing = alice.get("/clusters/", {"state": "active"}).context["listing"]
    export = alice.get("/api/v1/lists/clusters.json")

    assert [line.pk for line in listing.lines] == [cluster.pk]
    assert listing.bulk is not None
    assert f'"id": {cluster.pk}' in b"".join(export.streaming_content).decode()


def test_numbers_and_values_are_written_as_people_read_them(
    people: SimpleNamespace, alice: Client, cluster: Cluster
) -> None:
    steer(alice, cluster, "change", sites="T2, T1")
    Cluster.objects.update(size=2_000_000)

    page = plain_text(alice.get(f"/clusters/{cluster.pk}/").content.decode())

    assert "0 of 2,000,000 done" in page
    assert "sites: nothing T1, T2" in page


def test_an_action_that_is_offered_no_more_says_why(alice: Client, cluster: Cluster) -> None:
    fail_first(cluster)
    steer(alice, cluster, "remove")

    answer = steer(alice, cluster, "hold")

    assert answer.status_code == 409
    page = answer.content.decode()
    assert "steer-rerun" in page
    assert 'class="notice tone-bad" role="alert"' in page


def test_gone_outputs_cannot_be_kept_longer(people: SimpleNamespace, alice: Client) -> None:
    cluster = ended_cluster(people.alice, 1)
    address = f"/clusters/{cluster.pk}/"
    assert "steer-prolong-outputs" in alice.get(address).content.decode()

    OutputLease.objects.update(removal_began_at=timezone.now())

    assert "steer-prolong-outputs" not in alice.get(address).content.decode()
