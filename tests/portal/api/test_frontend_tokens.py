"""Tokens that are limited to one frontend: how they are made, what they reach, and how they end."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests import factories
from tests.portal.api.submissions import dag_form, findings_in
from tests.wms.placement.replicas import replica, storage
from wms.accounting.frontends import delete_frontend
from wms.accounting.limited_tokens import issue_limited_token
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.errors import Finding, InvalidInput, NotFound
from wms.core.models import ApiToken, AuditEntry, Scope, User
from wms.dags.models import Dag
from wms.jobs.content.blobs import store_bytes
from wms.jobs.models import Cluster, ResumableUpload, Workspace
from wms.jobs.uploads.selectors import find_upload
from wms.placement.models import PlacementRequest
from wms.placement.operations import start_attempt
from wms.schedules.models import Schedule
from wms.schedules.submitting import submit_dag_of

TOKENS, DAGS = "/api/v1/tokens/", "/api/v1/dags/"
SUBMIT = "executable = /bin/true\n{group}queue\n"


@pytest.fixture
def cms(people: SimpleNamespace) -> Frontend:
    """Frontend whose group alice is in; another one is bob's."""
    atlas = Frontend.objects.create(name="atlas")
    AccountingGroup.objects.create(name="higgs", frontend=atlas).members.add(people.bob)
    frontend = Frontend.objects.create(name="cms")
    group = AccountingGroup.objects.create(name="top", frontend=frontend)
    group.members.add(people.alice)
    AccountingGroup.objects.create(name="plain").members.add(people.alice)
    return frontend


def _client(user: User, **named: Any) -> APIClient:
    actor = Actor.person(user)
    client = APIClient()
    text = issue_limited_token(user, frontend="cms", name="t", actor=actor, **named).text
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def _dag(user: User, group: str = "") -> Dag:
    dag = factories.dag(user)
    Dag.objects.filter(pk=dag.pk).update(
        accounting_group=AccountingGroup.objects.filter(name=group).first()
    )
    return dag


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].strip("/").rpartition("/")[2]


def test_a_token_is_limited_when_it_is_made_and_says_so(
    cms: Frontend, people: SimpleNamespace, alice: APIClient
) -> None:
    made = alice.post(TOKENS, {"name": "n", "frontend": "cms"}, format="json")
    listed = alice.get(f"{TOKENS}?frontend=cms&fields=name,frontend").json()["results"]

    assert (made.status_code, made.json()["frontend"]) == (201, "cms")
    assert listed == [{"name": "n", "frontend": "cms"}]
    assert AuditEntry.objects.filter(action="create token", facts__frontend="cms").count() == 1
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.json()['token']}")
    me = client.get("/api/v1/me/").json()
    assert (me["token"]["frontend"], me["groups"]) == ("cms", ["top"])


@pytest.mark.parametrize("name", ["atlas", "nothing", "-", "a\0b"])
def test_no_token_is_limited_to_a_frontend_that_its_user_is_not_in(
    name: str, cms: Frontend, alice: APIClient
) -> None:
    refused = alice.post(TOKENS, {"name": "n", "frontend": name}, format="json")

    assert refused.status_code == 400
    assert not ApiToken.objects.filter(name="n").exists()


def test_its_own_frontends_objects_are_reached_and_the_users_others_are_not(
    cms: Frontend, people: SimpleNamespace
) -> None:
    inside, beside, nobodys = (_dag(people.alice, each) for each in ("top", "plain", ""))
    client = _client(people.alice)
    listed = {row["id"] for row in client.get(DAGS).json()["results"]}
    held = [
        client.post(f"{DAGS}{dag.pk}/hold/", {"reason": "look"}, format="json").status_code
        for dag in (inside, beside, nobodys)
    ]

    assert listed == {inside.pk}
    assert held == [200, 404, 404]
    assert Dag.objects.filter(state="held").get() == inside


def test_what_is_of_all_or_of_a_person_is_out_of_reach_whatever_the_role(
    cms: Frontend, people: SimpleNamespace
) -> None:
    site = factories.site("UW")
    client = _client(people.ada)
    asked = [
        ("get", TOKENS), ("post", TOKENS), ("get", "/api/v1/uploads/"), ("get", "/api/v1/audit/"),
        ("post", "/api/v1/bulk/"), ("post", f"/api/v1/sites/{site.name}/ban/"),
        ("put", "/api/v1/frontends/cms/"), ("post", "/api/v1/placement-requests/"),
        ("get", "/api/v1/lists/dags.csv"),
    ]  # fmt: skip

    for method, at in asked:
        answer = getattr(client, method)(at, {"reason": "look"}, format="json")
        assert (at, _code(answer)) == (at, (403, "beyond-frontend"))
    assert client.get(f"/api/v1/sites/{site.name}/").status_code == 200
    permissions = client.get("/api/v1/me/").json()["permissions"]
    assert permissions[-1] == "shifter"
    text = issue_limited_token(
        people.ada, frontend="cms", name="m", actor=Actor.person(people.ada)
    ).text
    assert Client().get("/metrics", HTTP_AUTHORIZATION=f"Token {text}").status_code == 403


def test_work_is_submitted_in_the_name_of_its_frontends_groups_only(
    cms: Frontend, people: SimpleNamespace
) -> None:
    client, submitted = _client(people.alice), {}
    for group in ("", "plain", "higgs", "top"):
        text = SUBMIT.format(group=f"accounting_group = {group}\n" if group else "")
        answer = client.post("/api/v1/jobs/", text, content_type="text/plain")
        submitted[group] = answer.status_code
    form = dag_form(name="n", cron="0 6 * * mon", time_zone="UTC")
    schedule = client.post("/api/v1/schedules/", form)
    dag = client.post(DAGS, dag_form())

    assert [each.json()["findings"][0]["field"] for each in (schedule, dag)] == [
        "accounting_group", "accounting_group",
    ]  # fmt: skip
    assert not Schedule.objects.exists()
    assert submitted == {"": 400, "plain": 400, "higgs": 400, "top": 201}
    assert [each.accounting_group.name for each in Cluster.objects.all()] == ["top"]
    assert Workspace.objects.count() == 1


def test_who_leaves_the_frontend_reaches_nothing_by_the_token(
    cms: Frontend, people: SimpleNamespace
) -> None:
    dag, client = _dag(people.alice, "top"), _client(people.alice)
    assert client.get(f"{DAGS}{dag.pk}/").status_code == 200

    cms.groups.get().members.remove(people.alice)

    assert client.get(f"{DAGS}{dag.pk}/").status_code == 404
    assert client.get(DAGS).json()["results"] == []


def test_a_token_ends_with_its_frontend_and_reaches_nothing_more(
    cms: Frontend, people: SimpleNamespace
) -> None:
    dag, client, olga = _dag(people.alice), _client(people.alice), Actor.person(people.olga)
    free = factories.token_for(people.alice)
    AccountingGroup.objects.filter(frontend=cms).update(frontend=None)

    delete_frontend(cms, actor=olga, reason="over")

    assert _code(client.get(f"{DAGS}{dag.pk}/")) == (401, "token-revoked")
    token = ApiToken.objects.get(name="t")
    assert (token.frontend, token.limit) == (None, "cms")
    assert token.revoked_at is not None
    assert AuditEntry.objects.get(action="revoke token").actor == "olga"
    free_client = APIClient()
    free_client.credentials(HTTP_AUTHORIZATION=f"Bearer {free}")
    assert free_client.get(f"{DAGS}{dag.pk}/").status_code == 200


def test_no_way_of_the_database_takes_the_limit_from_a_token_that_is_good(
    cms: Frontend, people: SimpleNamespace
) -> None:
    _client(people.alice)
    AccountingGroup.objects.filter(frontend=cms).update(frontend=None)

    for change in (
        lambda: ApiToken.objects.update(frontend=None),
        lambda: ApiToken.objects.update(frontend_name=""),
        lambda: Frontend.objects.get(pk=cms.pk).delete(),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()
    assert ApiToken.objects.get().frontend == cms


def test_the_limit_is_chosen_on_the_account_page_by_administrators_and_in_a_shell(
    cms: Frontend, people: SimpleNamespace, client: Client
) -> None:
    client.force_login(people.alice)
    client.post("/account/tokens/", {"name": "page", "days": "7", "frontend": "cms"})
    wrong = client.post("/account/tokens/", {"name": "x", "days": "7", "frontend": "atlas"})
    client.force_login(people.ada)
    form = {"name": "admin", "scopes": ["read"], "user": people.alice.pk}
    client.post("/admin/core/apitoken/add/", form | {"frontend": cms.pk})
    atlas = Frontend.objects.get(name="atlas")
    refused = client.post("/admin/core/apitoken/add/", form | {"frontend": atlas.pk})
    call_command("accounts", "token", "alice", "--name", "shell", "--frontend", "cms")

    assert wrong.status_code == 400
    assert refused.context["adminform"].form.errors.keys() == {"frontend"}
    limits = {row.name: row.limit for row in ApiToken.objects.select_related("frontend")}
    assert limits == dict.fromkeys(("page", "admin", "shell"), "cms")
    assert set(ApiToken.objects.get(name="page").scopes) == set(Scope.values)
    with pytest.raises(InvalidInput):
        issue_limited_token(people.bob, frontend="cms", name="b", actor=factories.SYSTEM)


def _described(**more: Any) -> dict[str, Any]:
    description = SimpleUploadedFile("dag.sub", b"accounting_group = top\n")
    return dag_form(description=description, **more)


def test_what_it_has_submitted_runs_within_the_limit_and_so_does_what_follows(
    cms: Frontend, people: SimpleNamespace
) -> None:
    factories.site("UW")
    client = _client(people.alice)
    inner = b"DATA D d.stork\n"
    removal = b'[dap_type = "remove"; src_url = "lfn:/mine"]'
    form = _described(
        dag="SUBDAG EXTERNAL I inner.dag\n", files={"inner.dag": inner, "d.stork": removal}
    )
    storage("se")
    replica(people.alice, "/mine", "se")
    made = client.post(DAGS, form)
    assert made.status_code == 201, made.json()

    factories.turn()
    request = PlacementRequest.objects.get()
    started = start_attempt(request.pk, timezone.now())

    assert Workspace.objects.get().limited_to == cms.pk
    assert Dag.objects.exclude(parent_node=None).count() == 1
    assert started is not None
    assert (started.resolved.file, started.resolved.removals) == (None, ())


def test_a_schedule_that_it_has_made_submits_within_the_limit(
    cms: Frontend, people: SimpleNamespace
) -> None:
    form = _described(name="n", cron="0 6 * * mon", time_zone="UTC")
    made = _client(people.alice).post("/api/v1/schedules/", form)
    assert made.status_code == 201, made.json()

    dag = submit_dag_of(Schedule.objects.get())

    assert dag.workspace.limited_to == cms.pk


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("grow", {"text": "JOB X job.sub\n"}),
        ("nodes/change", {"nodes": ["A1"], "variables": {"input": "lfn:/mine"}}),
    ],
)
def test_it_adds_nothing_to_a_dag_that_has_all_of_its_owners_data(
    action: str, body: dict[str, Any], cms: Frontend, people: SimpleNamespace
) -> None:
    client, dag = _client(people.alice), _dag(people.alice, "top")
    sent = {**body, "reason": "more"}

    refused = client.post(f"{DAGS}{dag.pk}/{action}/", sent, format="json")
    before = (dag.nodes.count(), dag.nodes.get(name="A1").variables)
    Workspace.objects.update(limited_to=cms.pk)
    done = client.post(f"{DAGS}{dag.pk}/{action}/", sent, format="json")

    assert _code(refused) == (403, "beyond-frontend")
    assert before == (2, {"number": "1"})
    assert done.status_code == 200, done.json()


def test_it_submits_no_upload_of_its_user(cms: Frontend, people: SimpleNamespace) -> None:
    blob = store_bytes(b"data")
    upload = ResumableUpload.objects.create(
        owner=people.alice, sha256=blob.pk, size_bytes=4, received_bytes=4,
        counted_bytes=4, blob=blob,
        expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    uploads = json.dumps({"data/big": upload.pk})

    refused = _client(people.alice).post(DAGS, _described(uploads=uploads))

    [finding] = findings_in(refused)
    assert (finding["file"], finding["field"]) == ("data/big", "uploads")
    assert find_upload(people.alice, upload.pk, now=timezone.now()) == upload
    with pytest.raises(NotFound):
        find_upload(people.alice.within(cms.pk), upload.pk, now=timezone.now())


def test_warnings_are_stored_as_former_releases_read_them() -> None:
    former = {"message", "file", "line", "field", "command", "column"}

    assert Finding("m", file="f").stored().keys() == former
    assert Finding(**Finding("m", file="f", member="x").stored()).member == "x"
