"""Site administrators: everything at their own sites, nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotPermitted
from wms.core.models import AuditEntry, Role, User
from wms.jobs.limits import delete_limit, save_limit
from wms.jobs.models import RunningLimit
from wms.pilots.pressure.pilot_limits import save_limit as save_pilot_limit
from wms.pilots.pressure_models import PilotLimit
from wms.sites.advertising import advertise, invalidate
from wms.sites.downtimes.services import add_downtime, cancel_downtimes, save_downtime
from wms.sites.models import Queue, Site
from wms.sites.policy import configurable_sites, may_configure, may_steer, steerable_sites
from wms.sites.services import ban_site, drain_site, save_queue, save_site, unban_site

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def sites() -> tuple[Site, Site]:
    """Tina's site, and one of others."""
    own, other = factories.site("UW"), factories.site("Florida")
    tina = factories.person("tina")
    save_site(own, actor=factories.SYSTEM, administrators=[tina])
    return own, other


@pytest.fixture
def tina(sites: tuple[Site, Site]) -> Actor:
    return Actor.person(User.objects.get(username="tina"))


def _downtime(site: Site, actor: Actor) -> None:
    downtime = add_downtime(
        site.name, start=NOW, end=NOW + HOUR, reason="disks", actor=actor, now=NOW
    )
    downtime.end += HOUR
    save_downtime(downtime, actor=actor, now=NOW)
    cancel_downtimes([downtime.pk], actor=actor, now=NOW)


def _change_site(site: Site, actor: Actor) -> None:
    site.max_matches += 1
    save_site(site, actor=actor)


def _change_queue(site: Site, actor: Actor) -> None:
    queue = site.queues.get()
    queue.max_pilots += 1
    save_queue(queue, actor=actor)


def _advertise(site: Site, actor: Actor) -> None:
    advertise(f'Name = "{site.name}"', actor=actor, now=NOW)
    invalidate(site.name, actor=actor, now=NOW)


def _limit_jobs(site: Site, actor: Actor) -> None:
    limit = RunningLimit(site=site, job_type="User", maximum=3)
    save_limit(limit, actor=actor)
    delete_limit(limit, actor=actor)


def _limit_pilots(site: Site, actor: Actor) -> None:
    save_pilot_limit(PilotLimit(scope="site", site=site, max_pilots=3), actor=actor)


def _steer(site: Site, actor: Actor) -> None:
    ban_site(site.name, actor=actor, reason="look")
    drain_site(site.name, actor=actor, reason="look")
    unban_site(site.name, actor=actor, reason="look")


ACTIONS = [
    _downtime, _change_site, _change_queue, _advertise, _limit_jobs, _limit_pilots, _steer,
]  # fmt: skip


@pytest.mark.parametrize("act", ACTIONS)
def test_an_administrator_does_it_at_the_own_site(
    sites: tuple[Site, Site], tina: Actor, act: Callable[[Site, Actor], None]
) -> None:
    act(sites[0], tina)

    assert AuditEntry.objects.filter(actor="tina").exists()


@pytest.mark.parametrize("act", ACTIONS)
def test_an_administrator_does_not_do_it_at_another_site(
    sites: tuple[Site, Site], tina: Actor, act: Callable[[Site, Actor], None]
) -> None:
    with pytest.raises(NotPermitted, match=r"tina may not|administrators"):
        act(sites[1], tina)

    assert not AuditEntry.objects.filter(actor="tina").exists()


def test_an_administrator_moves_no_limit_from_or_to_another_site(
    sites: tuple[Site, Site], tina: Actor
) -> None:
    theirs = RunningLimit(site=sites[1], job_type="User", maximum=3)
    save_limit(theirs, actor=factories.SYSTEM)

    theirs.site = sites[0]
    with pytest.raises(NotPermitted):
        save_limit(theirs, actor=tina)

    with pytest.raises(NotPermitted):
        save_limit(RunningLimit(job_type="User", maximum=3), actor=tina)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"ssh": {"host": "elsewhere", "config_file": "/tmp/evil"}}},
        {"element": "slurm"},
        {"owner": "tina"},
        {"fence": "none"},
        {"is_private": True},
        {"shared_folders": [{"path": "/home"}]},
    ],
)
def test_an_administrator_leaves_alone_how_the_portal_reaches_a_batch_system(
    sites: tuple[Site, Site], tina: Actor, change: dict[str, object]
) -> None:
    queue = sites[0].queues.get()
    for name, value in change.items():
        setattr(queue, name, tina.user if name == "owner" else value)

    with pytest.raises(NotPermitted, match=next(iter(change))):
        save_queue(queue, actor=tina)


def test_an_administrator_takes_no_queue_of_another_site(
    sites: tuple[Site, Site], tina: Actor
) -> None:
    queue = sites[1].queues.get()
    queue.site = sites[0]

    with pytest.raises(NotPermitted):
        save_queue(queue, actor=tina)


def test_an_administrator_makes_no_site_and_no_queue(sites: tuple[Site, Site], tina: Actor) -> None:
    with pytest.raises(NotPermitted):
        save_site(Site(name="New"), actor=tina)
    with pytest.raises(NotPermitted):
        save_queue(Queue(site=sites[0], name="new", element="host"), actor=tina)


def test_an_administrator_names_no_other(sites: tuple[Site, Site], tina: Actor) -> None:
    friend = factories.person("friend", Role.SITE_ADMIN)

    with pytest.raises(NotPermitted):
        save_site(sites[0], actor=tina, administrators=[friend])


def test_an_administrator_needs_the_role(sites: tuple[Site, Site]) -> None:
    alice = factories.person("alice")

    with pytest.raises(InvalidInput, match="alice"):
        save_site(sites[0], actor=factories.SYSTEM, administrators=[alice])


def test_who_loses_the_role_loses_the_sites(sites: tuple[Site, Site], tina: Actor) -> None:
    assert tina.user is not None
    User.objects.filter(pk=tina.user.pk).update(role=Role.USER)
    user = User.objects.get(pk=tina.user.pk)

    assert not configurable_sites(user).exists()
    assert not may_configure(user, sites[0])


def test_naming_is_audited(sites: tuple[Site, Site]) -> None:
    entry = AuditEntry.objects.get(target="site UW", action="change site")

    assert entry.facts == {"administrators": [[], ["tina"]]}


def test_a_shifter_steers_all_sites_and_configures_those_that_name_the_shifter(
    sites: tuple[Site, Site],
) -> None:
    own, other = sites
    sam = factories.person("sam")
    save_site(other, actor=factories.SYSTEM, administrators=[sam])

    assert set(steerable_sites(sam)) == {own, other}
    assert list(configurable_sites(sam)) == [other]
    assert may_steer(sam, own)
    assert not may_configure(sam, own)
    assert may_configure(sam, other)


def test_a_site_that_changed_since_it_was_seen_is_left_alone(sites: tuple[Site, Site]) -> None:
    drain_site("UW", actor=factories.SYSTEM, reason="moves house")

    with pytest.raises(Conflict, match="UW"):
        ban_site("UW", actor=factories.SYSTEM, reason="eats jobs", seen="open")

    assert Site.objects.get(name="UW").state == "draining"
