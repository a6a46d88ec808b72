from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.portal.web.markup import text_of
from wms.accounting.models import Quota
from wms.core.models import User
from wms.dags.models import Dag
from wms.jobs.models import WorkspaceFile


def _send(client: Client, dag_text: str, *, nonce: str = "", htmx: bool = False, **more: str):
    files = {"job.sub": factories.SUBMIT_FILE, "run.sh": "#!/bin/sh\n"}
    data = {
        "dag": SimpleUploadedFile("work.dag", dag_text.encode()),
        "files": [SimpleUploadedFile(name, text.encode()) for name, text in files.items()],
        "nonce": nonce,
        **{name: SimpleUploadedFile(f"{name}.sub", text.encode()) for name, text in more.items()},
    }
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(reverse("web:submit"), data, headers=headers)


def test_a_dag_is_stored_with_its_files_and_its_own_description(alice: Client) -> None:
    answer = _send(alice, factories.dag_text(2), description='+Project = "higgs"\nqueue\n')

    dag = Dag.objects.get()
    assert answer.headers["Location"] == reverse("web:dag", args=[dag.pk])
    assert (dag.owner.username, dag.node_count) == ("alice", 2)
    assert dag.ad_attributes == {"Project": '"higgs"'}
    names = set(WorkspaceFile.objects.values_list("path", flat=True))
    assert names == {"work.dag", "job.sub", "run.sh", "description.sub"}


def test_every_fault_is_shown_with_its_place_and_nothing_is_stored(alice: Client) -> None:
    answer = _send(alice, "JOB A job.sub\nPARENT A CHILD B\nJOBB C job.sub\n")

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "work.dag:2" in page
    assert "PARENT A CHILD" in page
    assert "work.dag:3" in page
    assert not Dag.objects.exists()


def test_the_page_takes_the_directory_and_the_root_and_shows_them_again(alice: Client) -> None:
    text = b"JOB A ../a.sub\nJOB B /home/alice/proj/a.sub\n"
    said = {"directory": "run", "root": "/home/alice/proj"}

    def send(path: str):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(path, "executable = /bin/true\nqueue\n")
        files = {
            "dag": SimpleUploadedFile("work.dag", text),
            "archive": SimpleUploadedFile("all.zip", stream.getvalue()),
        }
        return alice.post(reverse("web:submit"), {**files, **said})

    refused = send("run/a.sub").content.decode()
    send("a.sub")

    assert "a.sub" in text_of(refused, "findings")
    assert 'name="directory" value="run"' in refused
    assert 'name="root" value="/home/alice/proj"' in refused
    assert (Dag.objects.get().directory, Dag.objects.get().root_path) == ("run", "/home/alice/proj")


def test_words_that_nobody_offers_are_told_on_the_page_of_the_stored_dag(alice: Client) -> None:
    factories.site()
    job = SimpleUploadedFile(
        "job.sub", b"executable = /bin/true\n" + b"\n".join(b'+Tags = "gpu"' for _ in "ab")
    )
    dag = SimpleUploadedFile("work.dag", b"JOB A job.sub\n")

    answer = alice.post(reverse("web:submit"), {"dag": dag, "files": [job]}, follow=True)

    page = answer.content.decode()
    assert Dag.objects.count() == 1
    assert page.count("job.sub:3: +Tags:") == 2


def test_of_many_warnings_the_first_are_quoted_and_the_rest_is_counted(alice: Client) -> None:
    tags = ", ".join(f"t{n}" for n in range(9))
    job = SimpleUploadedFile("job.sub", f'executable = /bin/true\n+Tags = "{tags}"\n'.encode())
    dag = SimpleUploadedFile("work.dag", b"JOB A job.sub\n")

    answer = alice.post(reverse("web:submit"), {"dag": dag, "files": [job]}, follow=True)

    page = answer.content.decode()
    flash = page.rpartition('role="status"')[2].partition("</div>")[0]
    assert "tag t2" in flash
    assert "tag t3" not in flash
    assert "6 more" in flash


def test_a_missing_dag_file_is_told_at_its_field(alice: Client) -> None:
    answer = alice.post(reverse("web:submit"), {})

    assert answer.status_code == 400
    assert "DAG file" in text_of(answer.content.decode(), "findings")


def test_what_is_not_text_is_refused(alice: Client) -> None:
    dag = SimpleUploadedFile("work.dag", b"\xff\xfe\x00JOB")

    answer = alice.post(reverse("web:submit"), {"dag": dag})

    assert answer.status_code == 400
    assert "work.dag" in answer.content.decode()


def test_a_form_that_is_sent_twice_makes_one_dag_and_a_mended_one_another(alice: Client) -> None:
    for _ in range(2):
        _send(alice, factories.dag_text(1), nonce="n1")
    assert Dag.objects.count() == 1

    _send(alice, factories.dag_text(2), nonce="n1")
    assert Dag.objects.count() == 2


def test_the_script_gets_the_faults_alone_and_then_the_way_to_the_dag(alice: Client) -> None:
    faulty = _send(alice, "JOB A\n", htmx=True)
    good = _send(alice, factories.dag_text(1), htmx=True)

    assert faulty.status_code == 400
    assert b"<html" not in faulty.content
    assert good.headers["HX-Redirect"] == reverse("web:dag", args=[Dag.objects.get().pk])


@pytest.mark.parametrize(("htmx", "status"), [(False, 409), (True, 400)])
def test_a_full_quota_is_told_in_the_form(
    people: SimpleNamespace, alice: Client, htmx: bool, status: int
) -> None:
    Quota.objects.create(user=people.alice, max_waiting_jobs=1)

    answer = _send(alice, factories.dag_text(2), htmx=htmx)

    assert (answer.status_code, answer.context["findings_total"]) == (status, 1)
    assert not Dag.objects.exists()


def test_a_viewer_is_told_that_submitting_is_not_for_them(
    people: SimpleNamespace, browser_of: Callable[[User], Client]
) -> None:
    vera = browser_of(people.vera)

    page = vera.get(reverse("web:submit"))
    answer = _send(vera, factories.dag_text(1))

    assert b"submit-form" not in page.content
    assert answer.status_code == 403
    assert not Dag.objects.exists()


def test_a_form_without_its_token_is_refused(people: SimpleNamespace) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people.alice)

    answer = _send(client, factories.dag_text(1))

    assert answer.status_code == 403
    assert not Dag.objects.exists()


def test_a_check_tells_the_shape_and_stores_nothing(alice: Client) -> None:
    files = [SimpleUploadedFile("job.sub", factories.SUBMIT_FILE.encode())]
    dag = SimpleUploadedFile("work.dag", factories.dag_text(3, is_chain=True).encode())
    data = {"dag": dag, "files": [*files, SimpleUploadedFile("run.sh", b"")], "do": "check"}

    answer = alice.post(reverse("web:submit"), data)

    assert answer.status_code == 200
    assert text_of(answer.content.decode(), "findings-title")
    statistics = answer.context["statistics"]
    assert (statistics.nodes, statistics.height, statistics.width) == (3, 3, 1)
    assert not Dag.objects.exists()


def test_faults_of_a_submit_file_are_quoted_with_their_lines(alice: Client) -> None:
    dag = SimpleUploadedFile("work.dag", b"JOB A job.sub\n")
    job = SimpleUploadedFile("job.sub", b"executable = x\nthis is nothing\n")

    page = alice.post(reverse("web:submit"), {"dag": dag, "files": [job]}).content.decode()

    assert "job.sub:2" in page
    assert "<code>this is nothing</code>" in page


def test_options_and_further_dag_files_are_taken(alice: Client) -> None:
    dags = [
        SimpleUploadedFile(name, b"JOB A job.sub\nVARS A number=1\n") for name in ("a.dag", "b.dag")
    ]
    files = [SimpleUploadedFile("job.sub", factories.SUBMIT_FILE.encode())]
    files.append(SimpleUploadedFile("run.sh", b""))
    data = {"dag": dags, "files": files, "option-max_jobs": "7", "option-depth_first": "true"}

    alice.post(reverse("web:submit"), data)

    dag = Dag.objects.get()
    assert dag.dag_files == ["a.dag", "b.dag"]
    assert dag.options == {"max_jobs": 7, "depth_first": True}


def test_an_option_that_is_no_number_is_refused_at_its_field(alice: Client) -> None:
    dag = SimpleUploadedFile("work.dag", b"JOB A job.sub\n")

    answer = alice.post(reverse("web:submit"), {"dag": dag, "option-max_jobs": "many"})

    assert answer.status_code == 400
    assert "many" in answer.content.decode()
