"""Pages of trials: asked for with files or with those of a DAG, seen by their owner, stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests import factories
from wms.core.errors import Finding
from wms.core.models import User
from wms.dags.models import Dag, Trial
from wms.dags.simulation.outcome import finding_as_dict
from wms.dags.trials.archives import unpack_into

NEW = "/trials/new/"


def _sent(text: str = "JOB A job.sub\n", **more: object) -> dict[str, object]:
    files = [SimpleUploadedFile("job.sub", factories.SUBMIT_FILE.encode())]
    return {"dag": SimpleUploadedFile("a.dag", text.encode()), "files": files, **more}


CHECKED = {"reason": "unknown node <B>", "file": "a.dag", "line": 2, "command": "RETRY"}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(CHECKED, id="of a check"),
        pytest.param(finding_as_dict(Finding("unknown node <B>", "a.dag", 2)), id="of a dry run"),
    ],
)
def test_a_trial_of_sent_files_is_asked_for_and_its_page_shows_the_report(
    alice: Client, found: dict[str, object]
) -> None:
    answer = alice.post(NEW, _sent(kind="dry_run", behaviour='{"A": [1]}'))

    trial = Trial.objects.get()
    page = reverse("web:trial", args=[trial.pk])
    assert answer.headers["Location"] == page
    assert (trial.kind, trial.request["behaviour"]) == ("dry_run", {"A": [1]})
    assert "waiting" in alice.get(page).content.decode()
    Trial.objects.update(
        state="done", ended_at=timezone.now(), exit_code=1, text="1 errors",
        report=json.dumps({"errors": [found], "warnings": [found]}),
    )  # fmt: skip
    shown = alice.get(page).content.decode()
    for words in ("a.dag:2", "unknown node &lt;B&gt;", "1 fault", "Not well", "1 errors"):
        assert words in shown
    assert page in alice.get(reverse("web:trials")).content.decode()


def test_the_files_that_a_dag_has_are_tried_where_its_names_are_looked_up(
    alice: Client, people: SimpleNamespace, tmp_path: Path
) -> None:
    big = b"\0" * (1024 * 1024 + 1)
    dag = factories.dag(people.alice, node_count=1, files={"data.bin": big, "d/x.txt": b"x"})
    assert f"?of={dag.pk}" in alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    assert "analysis" in alice.get(NEW, {"of": dag.pk}).content.decode()

    assert alice.post(NEW, {"of": dag.pk, "kind": "check"}).status_code == 302

    trial = Trial.objects.get()
    assert trial.request["dag_files"] == ["analysis.dag"]
    unpack_into(trial.archive, tmp_path / "files")
    sent = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert sent["analysis.dag"].decode() == factories.dag_text(1)
    assert (sent["data.bin"], sent["x.txt"]) == (b"", b"x")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"kind": "check"}, "Choose a DAG file"),
        (_sent(kind="guess"), "must be check or dry_run"),
        ({"of": "x"}, "must be the number of a DAG"),
        (_sent(kind="dry_run", behaviour="{"), "is not JSON"),
        (_sent(kind="dry_run", behaviour='{"options": {"slots": "many"}}'), "slots"),
        (_sent(root="below"), "must be an absolute path"),
    ],
)
def test_a_faulty_form_is_answered_with_its_faults_and_stores_nothing(
    alice: Client, form: dict[str, object], words: str
) -> None:
    answer = alice.post(NEW, form)

    assert (answer.status_code, Trial.objects.count()) == (400, 0)
    assert words in answer.content.decode()


def test_others_see_no_trial_and_try_no_dag_that_they_do_not_see(
    alice: Client, people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    alice.post(NEW, _sent())
    page = reverse("web:trial", args=[Trial.objects.get().pk])
    bob, vera = browser_of(people.bob), browser_of(people.vera)

    assert bob.get(page).status_code == 404
    assert page not in bob.get(reverse("web:trials")).content.decode()
    assert vera.post(NEW, _sent()).status_code == 403
    assert alice.post(NEW, {"of": Dag.objects.count() + 99}).status_code == 404


def test_a_trial_is_stopped_once_and_a_fifth_is_refused(alice: Client) -> None:
    for _ in range(4):
        alice.post(NEW, _sent())
    refused = alice.post(NEW, _sent(behaviour="{}"))
    assert (refused.status_code, Trial.objects.count()) == (409, 4)
    assert "You have 4 trials" in refused.content.decode()
    trial = Trial.objects.earliest("pk")

    alice.post(reverse("web:stop-trial", args=[trial.pk]))

    trial.refresh_from_db()
    assert trial.state == "stopped"
    assert alice.post(NEW, _sent()).status_code == 302


def test_the_list_of_trials_is_filtered_sorted_and_paged(alice: Client, people) -> None:
    made = [
        Trial(
            owner=people.alice,
            kind=kind,
            request={"dag_files": [name]},
            archive=f"{name}-{number}",
            size_bytes=1,
        )
        for number in range(40)
        for kind, name in (("check", "weekly.dag"), ("dry_run", "other.dag"))
    ]
    Trial.objects.bulk_create(made)
    address = reverse("web:trials")

    whole, found = alice.get(address), alice.get(f"{address}?file=WEEK&kind=check&state=waiting")
    none = alice.get(f"{address}?exit=1")
    faulty = alice.get(f"{address}?state=lost")

    assert len(whole.context["listing"].lines) == 50
    assert whole.context["listing"].page.older
    lines = found.context["listing"].lines
    assert {(each.kind, each.dag_files[0]) for each in lines} == {("check", "weekly.dag")}
    assert len(lines) == 40
    assert not none.context["listing"].lines
    assert faulty.context["listing"].form.errors
    exported = alice.get("/api/v1/lists/trials.json?file=other")
    assert len(json.loads(b"".join(exported.streaming_content))["lines"]) == 40
