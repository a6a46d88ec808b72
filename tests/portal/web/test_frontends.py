"""Pages and API of frontends and factories: what they tell, to whom, and what they refuse."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests import factories
from tests.portal.admin.filling import filled
from wms.accounting.models import AccountingGroup, Frontend
from wms.core.actors import Actor
from wms.core.models import AuditEntry, User
from wms.dags.models import Dag
from wms.factories.models import FactoryEntry, RemoteFactory
from wms.history.models import Series
from wms.history.sampling import run_cycle
from wms.history.selectors import read_series
from wms.jobs.models import Attempt, JobEvent, Workspace
from wms.notices.fanout import check_conditions
from wms.notices.services import subscribe
from wms.pilots.credential_models import Credential
from wms.pilots.lifecycle import apply
from wms.pilots.models import Pilot, PilotCheck
from wms.pilots.pressure.director import plan_requests
from wms.pilots.pressure_models import PressureRequest
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue
from wms.taskqueues.models import TaskQueue

pytestmark = pytest.mark.usefixtures("own_cache")
JSON = "application/json"


@pytest.fixture(scope="module")
def rows(module_rows: None) -> None:
    """Alice's atlas, with an entry, pilots, a job that ran, a credential and a failed check.

    Bob's lsst has an entry at the same queue.
    """
    people, now = factories.people(), timezone.now()
    queue = factories.site("UW").queues.get()
    atlas = _collaboration("atlas", people.alice, queue, 'TARGET.Owner != "nobody"')
    _collaboration("lsst", people.bob, queue)
    factories.running_dag(people.alice, node_count=3)
    pilot = factories.pilot(queue)
    assert factories.run_job(pilot) is not None
    assert factories.claim(pilot) is not None
    broken = factories.queued_pilot(queue)
    group = atlas.groups.get()
    Dag.objects.update(accounting_group=group)
    Workspace.objects.update(owner_group=group.name)
    TaskQueue.objects.update(owner_group=group.name)
    Attempt.objects.update(owner_group=group.name)
    Pilot.objects.update(frontend=atlas)
    Pilot.objects.filter(pk=broken.pk).update(batch_node="wn7", batch_exit_code=3)
    apply("abort", [broken.pk], actor=factories.SYSTEM, reason="disk full", ended_at=now)
    PilotCheck.objects.create(
        pilot=pilot, key="k", name="scratch", is_ok=False, reason="too small", seconds=1.0
    )
    Credential.objects.create(
        name="login", frontend=atlas, queue=queue, kind="ssh-key", account="a", directory="/a",
        sealed="not to be seen", expires_at=now - timedelta(minutes=1),
    )  # fmt: skip
    plan_requests(now)
    run_cycle(now)
    notify_of_ends(people.alice, now)


def _collaboration(name: str, member: User, queue: Queue, start: str = "") -> Frontend:
    frontend = Frontend.objects.create(name=name, start_expression=start)
    group = AccountingGroup.objects.create(name=name, frontend=frontend)
    group.members.add(member)
    FrontendEntry.objects.create(frontend=frontend, queue=queue, share=3)
    return frontend


def notify_of_ends(user: User, now: datetime) -> None:
    subscribe("credentials", actor=Actor.person(user))
    check_conditions(now)
    check_conditions(now)


def words(answer: Any) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


def of(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.mark.slow
def test_the_page_tells_a_manager_what_there_is_and_what_is_wrong(rows: None, db: None) -> None:
    page = words(of("alice").get("/frontends/atlas/"))

    for told in (
        "UW/short", "login", "has ended", "scratch", "too small", "disk full", "wn7",
        'TARGET.Owner != "nobody"', "No pilot is submitted with it", "The credential login",
    ):  # fmt: skip
        assert told in page, told
    assert "not to be seen" not in page
    listed = of("alice").get("/frontends/").content.decode()
    assert ("/frontends/atlas/" in listed, "/frontends/lsst/" in listed) == (True, False)
    assert of("bob").get("/frontends/atlas/").status_code == 404
    Credential.objects.update(replaced_at=timezone.now() - timedelta(days=30))
    overview = words(of("sam").get("/"))
    assert "credential ended" in overview
    assert "until it expires" not in overview
    default = [of(name).get("/frontends/-/").status_code for name in ("sam", "bob")]
    assert default == [200, 404]


def test_the_api_tells_how_entries_stand_with_shares_and_reasons(rows: None, db: None) -> None:
    (entry,) = of("alice").get("/api/v1/frontends/atlas/entries/").json()

    assert (entry["site"], entry["queue"], entry["share"]) == ("UW", "short", 3)
    assert (entry["running"], entry["queued"], entry["credential"]) == (1, 0, "login")
    # Nobody else's jobs wait there, and all pilots are its own.
    assert (entry["share_due"], entry["share_now"]) == (100, 100)
    assert entry["request"]["waiting_jobs"] == 0
    assert any("login" in reason for reason in entry["reasons"])
    assert of("bob").get("/api/v1/frontends/atlas/entries/").status_code == 404


def test_history_of_a_frontend_is_told_to_its_people_only(rows: None, db: None) -> None:
    atlas = Frontend.objects.get(name="atlas")
    series = [f"{name}/{atlas.pk}" for name in ("pilots.running", "jobs.waiting", "jobs.running")]
    asked = "/api/v1/history/?" + "&".join(f"series={name}" for name in series)

    told = {row["name"]: row["bins"] for row in of("alice").get(asked).json()["series"]}
    hidden = of("bob").get(asked).json()["series"]

    assert [told[name][-1]["last"] for name in series] == [1, 1, 1]
    assert [row["bins"] for row in hidden] == [[], [], []]
    for pane, line in (("throughput", "done"), ("jobs", "waiting")):
        data = of("alice").get(f"/api/v1/history/panes/{pane}.json?frontend=atlas").json()
        found = next(each for each in data["lines"] if each["name"] == line)
        assert (data["frontend"], found["series"].endswith(f"/{atlas.pk}")) == ("atlas", True)
    done = read_series([f"throughput.done/{atlas.pk}"], archive="1min", now=timezone.now())
    assert sum(point.total for point in done[f"throughput.done/{atlas.pk}"]) == 1
    for at in ("/history/jobs.json", "/api/v1/history/panes/jobs.json", "/history/jobs/"):
        assert of("bob").get(f"{at}?frontend=atlas").status_code == 400
        assert of("alice").get(f"{at}?frontend=atlas&site=UW").status_code == 400
    assert "of atlas" in words(of("alice").get("/history/?frontend=atlas"))


def test_what_is_in_no_frontend_has_a_history_too(rows: None, db: None) -> None:
    atlas = Frontend.objects.get(name="atlas")
    # Of the minute that it is now: the API shows no bin that has not begun.
    now = timezone.now().replace(second=59, microsecond=999_999)
    for model in (Workspace, TaskQueue, Attempt):
        model.objects.update(owner_group="")
    # The rows may have been made a minute ago.
    JobEvent.objects.filter(event="complete").update(created_at=timezone.now())
    Pilot.objects.update(frontend=None)
    PressureRequest.objects.filter(frontend=None).update(
        wanted=5, granted=2, lease_until=now + timedelta(minutes=1)
    )

    run_cycle(now)

    expected = {
        "pilots.running/0": 1, "pilots.requested/0": 5, "pilots.granted/0": 2,
        "jobs.waiting/0": 1, "jobs.running/0": 1, f"jobs.running/{atlas.pk}": 0,
        f"pilots.running/{atlas.pk}": 0,
    }  # fmt: skip
    asked = "/api/v1/history/?" + "&".join(f"series={name}" for name in expected)
    told = {row["name"]: row["bins"] for row in of("sam").get(asked).json()["series"]}
    assert {name: bins[-1]["last"] for name, bins in told.items()} == expected
    done = read_series(["throughput.done/0"], archive="1min", now=now)
    assert sum(point.total for point in done["throughput.done/0"]) == 1
    # Charlie is in no frontend; Bob is in another one only.
    shown = of("charlie").get("/api/v1/history/?series=pilots.running/0").json()["series"]
    hidden = of("bob").get("/api/v1/history/?series=pilots.running/0").json()["series"]
    assert (bool(shown[0]["bins"]), hidden[0]["bins"]) == (True, [])
    for at in ("/history/jobs.json", "/api/v1/history/panes/jobs.json", "/history/jobs/"):
        assert of("charlie").get(f"{at}?frontend=-").status_code == 200
        assert of("bob").get(f"{at}?frontend=-").status_code == 400
    assert "of the default frontend" in words(of("charlie").get("/history/?frontend=-"))
    assert "the default frontend" not in words(of("bob").get("/history/"))
    assert "Pilots requested, granted, running" in words(of("charlie").get("/frontends/-/"))


def test_series_go_with_their_frontend(rows: None, db: None) -> None:
    lsst = Frontend.objects.get(name="lsst")
    assert Series.objects.filter(name=f"pilots.running/{lsst.pk}").exists()
    PressureRequest.objects.filter(frontend=lsst).delete()
    FrontendEntry.objects.filter(frontend=lsst).delete()
    AccountingGroup.objects.filter(frontend=lsst).delete()
    lsst_pk = lsst.pk
    lsst.delete()

    run_cycle(timezone.now() + timedelta(seconds=10))

    assert not Series.objects.filter(name__endswith=f"/{lsst_pk}").exists()
    assert Series.objects.filter(name="pilots.running/0").exists()


def test_operators_write_frontends_and_entries_and_faults_are_told_by_field(
    rows: None, db: None
) -> None:
    olga = of("olga")
    made = olga.post("/api/v1/frontends/?reason=look", {"name": "cms"}, content_type=JSON)
    entry = {"frontend": "cms", "queue": "UW/short", "share": 2}
    given = olga.post("/api/v1/frontend-entries/", entry, content_type=JSON)
    at = f"/api/v1/frontend-entries/{given.json()['id']}/"

    assert (made.status_code, given.status_code) == (201, 201)
    assert AuditEntry.objects.filter(target="frontend cms", reason="look").count() == 1
    assert of("alice").get(at).status_code == 404
    assert (
        of("alice").post("/api/v1/frontends/", {"name": "x"}, content_type=JSON).status_code == 403
    )
    for change, field in (
        ({"max_pilots": 2, "max_queued_pilots": 3}, "max_queued_pilots"),
        ({"share": 0, "max_pilots": 2}, "max_pilots"),
        ({"max_pilots": 10**6}, "max_pilots"),
        ({"start_expression": "TARGET.Cpus >"}, "start_expression"),
        ({"queue": "UW/none"}, "queue"),
    ):
        refused = olga.put(at, entry | change, content_type=JSON)
        fields = {finding["field"] for finding in refused.json()["findings"]}
        assert (refused.status_code, fields) == (400, {field})
    renamed = olga.put("/api/v1/frontends/cms/", {"name": "other"}, content_type=JSON)
    assert renamed.json()["findings"][0]["field"] == "name"
    assert olga.delete("/api/v1/frontends/cms/").status_code == 409
    assert olga.delete(at).status_code == 204
    assert olga.delete("/api/v1/frontends/cms/").status_code == 204


def test_a_factorys_page_tells_its_entries_and_its_sites_are_chosen_from_a_list(
    rows: None, db: None
) -> None:
    factory = RemoteFactory.objects.create(name="north", sites=["gone"], seen_at=timezone.now())
    FactoryEntry.objects.create(
        factory=factory, name="there/main", facts={"running": 5}, seen_at=timezone.now(),
        refusal="no queue here has this entry",
    )  # fmt: skip

    page = words(of("alice").get("/factories/north/"))

    assert ("there/main" in page, "no queue here has this entry" in page) == (True, True)
    assert of("alice").get("/factories/south/").status_code == 404
    olga, at = of("olga"), f"/admin/factories/remotefactory/{factory.pk}/change/"
    form = olga.get(at).content.decode()
    assert [f'<option value="{name}>' in form for name in ('gone" selected', 'UW"')] == [True, True]
    body = filled(olga, at, "admin:factories_remotefactory_change")
    assert olga.post(at, body | {"sites": ["nowhere"]}).status_code == 200
    assert olga.post(at, body | {"sites": ["UW"]}).status_code == 302
    factory.refresh_from_db()
    assert factory.sites == ["UW"]
