"""Page on which a DAG is edited and submitted anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.portal.web.markup import text_of
from wms.dags.models import Dag
from wms.dags.services.dags import remove_dags
from wms.dags.submission.workspaces import read_file

_TEXT = "text:analysis.dag"


@pytest.fixture
def dag(people: SimpleNamespace) -> Dag:
    """A DAG of alice with two nodes, idle."""
    return factories.dag(people.alice)


def _page(client: Client, dag: Dag) -> dict[str, Any]:
    """Fields of the form as a browser sends them, with its line ends."""
    context = client.get(reverse("web:dag-edit", args=[dag.pk])).context
    texts = {each.name: each.value.replace("\n", "\r\n") for each in context["texts"]}
    values = context["values"]
    return {
        **texts, "seen": context["seen"], "nonce": context["nonce"], "start": values.start,
        "binding": values.binding, "labels": values.labels, "priority": values.priority,
        "reason": "a typo",
    }  # fmt: skip


def _send(client: Client, dag: Dag, form: dict[str, Any], do: str = "submit"):
    return client.post(reverse("web:dag-edit", args=[dag.pk]), {**form, "do": do})


def test_an_edited_dag_is_submitted_once_and_both_pages_lead_to_each_other(
    alice: Client, dag: Dag
) -> None:
    form = {**_page(alice, dag), "text:run.sh": "#!/bin/sh\r\necho mended\r\n", "labels": "second"}

    first, second = _send(alice, dag, form), _send(alice, dag, form)

    new = Dag.objects.get(previous_run=dag)
    address = reverse("web:dag", args=[new.pk])
    assert (first.headers["Location"], second.headers["Location"]) == (address, address)
    assert read_file(new.workspace_id, "run.sh") == b"#!/bin/sh\necho mended\n"
    assert read_file(new.workspace_id, "analysis.dag") == read_file(
        dag.workspace_id, "analysis.dag"
    )
    assert new.labels == ["second"]
    assert f'id="copy-{new.pk}"' in alice.get(reverse("web:dag", args=[dag.pk])).content.decode()
    assert text_of(alice.get(address).content.decode(), "previous-run") == f"DAG {dag.pk}"


def test_faults_are_shown_at_their_lines_and_what_was_typed_stays(alice: Client, dag: Dag) -> None:
    form = {**_page(alice, dag), _TEXT: "\r\nJOB A job.sub\r\nJOBB <b>\r\n"}

    checked, submitted = _send(alice, dag, form, "check"), _send(alice, dag, form)
    unreasoned = _send(alice, dag, {**_page(alice, dag), "reason": ""})
    odd = _send(alice, dag, {**_page(alice, dag), "priority": "99", "option-max_jobs": "x"})

    for answer in (checked, submitted):
        assert answer.status_code == 400
        [fault] = answer.context["findings"]
        assert (fault.place, fault.line) == ("analysis.dag:3", "JOBB <b>")
        # The first line end after the tag is not part of the text.
        assert "\n\nJOB A job.sub\nJOBB &lt;b&gt;\n</textarea>" in answer.content.decode()
    assert (unreasoned.status_code, odd.status_code) == (400, 400)
    assert Dag.objects.count() == 1


def test_a_check_and_a_comparison_store_nothing(alice: Client, dag: Dag) -> None:
    form = {**_page(alice, dag), _TEXT: factories.dag_text(3)}

    checked, compared = (_send(alice, dag, form, do) for do in ("check", "changes"))

    assert (checked.status_code, checked.context["statistics"].nodes) == (200, 3)
    [change] = compared.context["changes"]
    added = [line.text for line in change.lines if line.kind == "added"]
    assert (change.path, added) == (
        "analysis.dag",
        ["+JOB A3 job.sub", "+VARS A3 number=3"],
    )
    assert Dag.objects.count() == 1


def test_a_form_of_before_a_removal_is_refused_and_may_be_sent_again(
    alice: Client, dag: Dag
) -> None:
    form = {**_page(alice, dag), "text:run.sh": "#!/bin/sh\nexit 0\n"}
    remove_dags([dag.pk], actor=factories.SYSTEM, reason="look")

    stale = _send(alice, dag, form)
    again = _send(alice, dag, {**form, "seen": stale.context["seen"]})

    assert stale.status_code == 409
    assert [each.value for each in stale.context["texts"] if each.is_changed] == [
        "#!/bin/sh\nexit 0\n"
    ]
    assert again.status_code == 302
    assert Dag.objects.filter(previous_run=dag).count() == 1


def test_files_are_replaced_and_others_may_make_a_copy_of_their_own(
    alice: Client, people: SimpleNamespace, dag: Dag
) -> None:
    bob, vera = Client(), Client()
    bob.force_login(people.bob)
    vera.force_login(people.vera)
    form = {**_page(bob, dag), "files": SimpleUploadedFile("run.sh", b"\0 a program")}
    # The file wins over the text.
    _send(bob, dag, form)

    new = Dag.objects.get(previous_run=dag)
    assert new.owner == people.bob
    assert read_file(new.workspace_id, "run.sh") == b"\0 a program"
    assert "edit-form" not in vera.get(reverse("web:dag-edit", args=[dag.pk])).content.decode()
    assert _send(vera, dag, {"reason": "look"}).status_code == 403
    assert _send(alice, dag, {"text:../etc": "x", "reason": "look"}).status_code == 400


@pytest.mark.slow
def test_a_check_tells_which_done_nodes_run_again(alice: Client, people: SimpleNamespace) -> None:
    dag = factories.running_dag(people.alice, node_count=2, is_chain=True)
    pilot = factories.pilot(dag.site.queues.get())
    for exit_code in (0, 3):
        factories.run_job(pilot, exit_code=exit_code)
        factories.turn()
    form = _page(alice, dag)
    form |= {
        "text:job.sub": form["text:job.sub"].replace("queue", "request_memory = 2 GB\r\nqueue")
    }

    checked = _send(alice, dag, form, "check")
    kept = _send(alice, dag, {**form, "keeps_done": "on"}, "check")
    sent = alice.post(reverse("web:dag-edit", args=[dag.pk]), {**form, "do": "submit"}, follow=True)

    assert form["start"] == "newest"
    assert text_of(checked.content.decode(), "changed-nodes") == "A1"
    assert [answer.context["prepared"].begins_done for answer in (checked, kept)] == [0, 1]
    assert Dag.objects.get(previous_run=dag).done_count == 0
    assert "A1" in sent.content.decode().rpartition('role="status"')[2]
