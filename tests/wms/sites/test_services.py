from __future__ import annotations

import pytest
from django.utils import timezone

from matching.task_queues.resources import Resource
from wms.accounting.models import AccountingGroup
from wms.core.actors import Actor
from wms.core.errors import InvalidInput, NotPermitted
from wms.core.models import AuditEntry, User
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.selectors import element_settings, enabled_queues, offered_resource
from wms.sites.services import QueueSpec, SiteSpec, configure_site, save_queue, save_site


@pytest.mark.parametrize(
    ("fields", "field", "line", "message"),
    [
        ({"requirements": "CurMatches <"}, "requirements", 1, "not a ClassAd expression"),
        ({"requirements": "CurMatches = 1"}, "requirements", 1, "write == or =?="),
        ({"rank": ""}, "rank", None, "blank"),
        ({"environment": "A=1\nB"}, "environment", 2, "expected NAME=value"),
        ({"environment": "A=1;B=2"}, "environment", 1, "semicolon"),
        ({"attributes": "X = 1\nY = ("}, "attributes", 2, "not a ClassAd expression"),
        ({"attributes": "A = B\nB = A"}, "attributes", None, "in a circle"),
        ({"requirements": 'eval("true")'}, "requirements", None, "eval cannot be used"),
        ({"attributes": "CurMatches = 0"}, "attributes", None, "set by Pilotage"),
        ({"attributes": "name = 0"}, "attributes", None, "set by Pilotage"),
        ({"name": "a b"}, "name", None, "letters, digits"),
    ],
)
def test_a_site_whose_ad_would_not_parse_is_refused_by_field_and_line(
    olga: User, fields: dict[str, str], field: str, line: int | None, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        configure_site(SiteSpec(**({"name": "x"} | fields)), [], actor=Actor.person(olga))

    (finding,) = caught.value.findings
    assert (finding.field, finding.line) == (field, line)
    assert message in finding.message
    assert not Site.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"element": "pbs"}, "element"),
        ({"settings": {"slots": 0}}, "settings"),
        ({"settings": {"colour": "red"}}, "settings"),
        ({"settings": {"directory": "relative"}}, "settings"),
        ({"cores": 0}, "cores"),
        ({"tags": [1]}, "tags"),
        ({"tags": ["a,b"]}, "tags"),
        ({"tags": [" "]}, "tags"),
        ({"tags": ["a" * 65]}, "tags"),
        ({"required_tags": [1]}, "required_tags"),
        ({"tags": ["a"], "required_tags": ["a", "b"]}, "required_tags"),
        ({"setup": " production"}, "setup"),
        ({"submit_pool": "one,two"}, "submit_pool"),
        ({"platform": "linux "}, "platform"),
        ({"gpus": 10**6}, "gpus"),
        ({"gpus": -1}, "gpus"),
        ({"owner": "nobody"}, "owner"),
        ({"owner_group": "nobody"}, "owner_group"),
    ],
)
def test_a_queue_that_cannot_work_is_refused_and_so_is_its_new_site(
    olga: User, fields: dict[str, object], field: str
) -> None:
    queue = QueueSpec(**({"name": "q", "element": "host"} | fields))  # type: ignore[arg-type]

    with pytest.raises(InvalidInput) as caught:
        configure_site(SiteSpec(name="x"), [queue], actor=Actor.person(olga))

    assert caught.value.findings[0].field == field
    assert not Site.objects.exists()


def test_only_operators_configure_sites(sam: User) -> None:
    with pytest.raises(NotPermitted, match="sam"):
        configure_site(SiteSpec(name="x"), [], actor=Actor.person(sam))


def test_a_change_is_told_with_old_and_new_values(make_site, olga: User) -> None:
    make_site("x", max_matches=2)
    make_site("x", max_matches=5)
    make_site("x", max_matches=5)

    event = SiteEvent.objects.filter(event="change").get()
    assert event.facts == {"target": "site x", "max_matches": [2, 5]}
    entries = AuditEntry.objects.order_by("pk").values_list("action", "actor")
    assert list(entries) == [
        ("create site", "olga"),
        ("create queue", "olga"),
        ("change site", "olga"),
    ]


def test_the_settings_of_a_queue_are_told_to_operators_only(make_site) -> None:
    make_site("x", queue={"settings": {"slots": 3}})
    make_site("x", queue={"settings": {"slots": 4}})

    event = SiteEvent.objects.filter(event="change").get()
    assert event.facts == {"target": "queue x/main", "settings": "changed"}
    entry = AuditEntry.objects.get(action="change queue")
    assert entry.facts == {"settings": [{"slots": 3}, {"slots": 4}]}


def test_names_cannot_be_changed(make_site, olga: User) -> None:
    site = make_site("x")
    queue = Queue.objects.select_related("site").get()
    site.name, queue.name = "y", "other"

    with pytest.raises(InvalidInput, match="x") as of_site:
        save_site(site, actor=Actor.person(olga))
    with pytest.raises(InvalidInput, match="main") as of_queue:
        save_queue(queue, actor=Actor.person(olga))
    for refused in (of_site, of_queue):
        assert [each.field for each in refused.value.findings] == ["name"]


def test_a_host_queue_needs_no_settings(make_site) -> None:
    make_site("x", queue={"max_pilots": 3})

    settings = element_settings(Queue.objects.select_related("site").get())

    assert settings["slots"] == 3
    assert str(settings["directory"]).endswith("/pilots/x/main")


def test_a_queue_of_another_host_gets_no_folder_of_ours(make_site) -> None:
    ssh = {"host": "login", "known_hosts_file": "/etc/ssh/ssh_known_hosts"}

    with pytest.raises(InvalidInput, match="directory: is missing"):
        make_site("x", queue={"settings": {"ssh": ssh}})

    make_site("y", queue={"settings": {"ssh": ssh, "directory": "/home/pilot/y"}})


def test_a_queue_of_slurm_counts_places_in_its_own_cores(olga: User) -> None:
    queue = QueueSpec(name="q", element="slurm", cores=8, settings={"log_directory": "/logs"})
    configure_site(SiteSpec(name="x"), [queue], actor=Actor.person(olga))

    settings = element_settings(Queue.objects.select_related("site").get())

    assert settings == {"log_directory": "/logs", "cores": 8}


def test_settings_that_do_not_fit_are_told_with_their_place(olga: User) -> None:
    settings = {"log_directory": "/logs", "ssh": {"host": "login", "port": "22"}}
    queue = QueueSpec(name="q", element="slurm", settings=settings)

    with pytest.raises(InvalidInput, match=r"ssh\.port.* 65535"):
        configure_site(SiteSpec(name="x"), [queue], actor=Actor.person(olga))


@pytest.fixture
def physics(alice: User) -> AccountingGroup:
    group = AccountingGroup.objects.create(name="physics")
    group.members.add(alice)
    return group


def test_a_queue_of_private_pilots_has_an_owner_who_is_in_its_group(
    make_site, alice: User, charlie: User, physics: AccountingGroup
) -> None:
    make_site("x", queue={"owner": "alice", "owner_group": "physics"})

    queue = Queue.objects.select_related("owner", "owner_group").get()
    assert (queue.owner, queue.owner_group) == (alice, physics)
    with pytest.raises(InvalidInput, match=r"charlie.*physics"):
        make_site("x", queue={"owner": "charlie", "owner_group": "physics"})
    with pytest.raises(InvalidInput, match="owner") as refused:
        make_site("x", queue={"owner_group": "physics"})
    assert [each.field for each in refused.value.findings] == ["owner"]


def test_what_a_queue_offers_is_what_its_fresh_pilots_offer(
    make_site, alice: User, physics: AccountingGroup
) -> None:
    make_site(
        "x",
        queue={
            "cores": 8,
            "memory_mb": 16_000,
            "gpus": 2,
            "wall_time_s": 3660,
            "platform": "linux-x86_64",
            "tags": ["ssd", "a100"],
            "required_tags": ["ssd"],
            "setup": "production",
            "submit_pool": "main",
            "owner": "alice",
            "owner_group": "physics",
        },
    )

    assert offered_resource(Queue.objects.get()) == Resource(
        site="x",
        cpu_time_s=3600,
        cores=8,
        memory_mb=16_000,
        gpus=2,
        queue="x/main",
        platform="linux-x86_64",
        setup="production",
        submit_pool="main",
        middleware="host",
        tags=("a100", "ssd"),
        required_tags=("ssd",),
        pilot_type="private",
        owner="alice",
        owner_groups=("physics",),
    )


@pytest.mark.parametrize(
    ("has_job_sharing", "group", "owner", "groups"),
    [(False, "", "alice", ("",)), (False, "physics", "alice", ("physics",)),
     (True, "physics", "", ("physics",))],
)  # fmt: skip
def test_the_jobs_of_a_private_queue_are_those_of_its_owner_or_of_all_who_share(
    make_site, physics: AccountingGroup, has_job_sharing, group, owner, groups
) -> None:
    AccountingGroup.objects.update(has_job_sharing=has_job_sharing)
    make_site("x", queue={"owner": "alice", "owner_group": group})

    offer = offered_resource(Queue.objects.get())

    assert (offer.pilot_type, offer.owner, offer.owner_groups) == ("private", owner, groups)


def test_the_offers_of_all_queues_take_one_query(
    make_site, django_assert_num_queries, physics: AccountingGroup
) -> None:
    for name in ("x", "y"):
        make_site(name, queue={"owner": "alice", "owner_group": "physics"})

    with django_assert_num_queries(1):
        offers = [offered_resource(queue) for queue in enabled_queues(timezone.now())]

    assert len(offers) == 2
