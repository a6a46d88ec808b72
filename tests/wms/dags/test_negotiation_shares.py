"""Whose DAGs a negotiation serves: priorities, groups, limits, and what places are counted in."""

from __future__ import annotations

from datetime import timedelta

from matching.negotiation.unmatched_reasons import Kind
from tests.wms.dags.driving import NOW, advance, claim_one, match, run_one
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Submitter
from wms.core.models import User
from wms.dags.models import Dag
from wms.dags.negotiation import cycle as negotiation
from wms.dags.negotiation import requests as demand
from wms.jobs.models import Attempt
from wms.sites.ads import Load, published_ad
from wms.sites.models import SiteAd

NODE = "JOB A step.sub"


def test_where_a_site_counts_jobs_a_dag_weighs_as_much_as_it_has_unfinished_nodes(
    submit, make_site
) -> None:
    site = make_site("site-a", max_matches=100, matches_unit="jobs", group_size=10)
    dag = match(submit("JOB A step.sub\nJOB B step.sub\nJOB C step.sub"))

    run_one("A")
    advance(dag)

    assert demand.loads_by_site() == {site.pk: Load(dags=1, unfinished_nodes=2)}
    negotiation.run_cycle(NOW + timedelta(seconds=5))
    ad = published_ad(SiteAd.objects.get())
    assert (ad.eval("CurMatches"), ad.eval("MaxMatches")) == (0.2, 10.0)


def test_small_and_large_groups_do_not_count_the_same(submit, make_site) -> None:
    make_site("site-a", max_matches=10, matches_unit="jobs", group_size=5)
    wide = "\n".join(f"JOB N{n} step.sub" for n in range(9))
    small, large = submit(NODE), submit(wide)
    late = submit(NODE)

    negotiation.run_cycle(NOW)

    states = Dag.objects.in_bulk([small.pk, large.pk, late.pk])
    # 0.2 + 1.8 of 2 places: the third one finds the site full.
    assert states[small.pk].state == states[large.pk].state == "running"
    assert "full" in states[late.pk].unmatched_reason


def test_concurrency_limits_are_kept_over_sites_and_cycles(submit, make_site) -> None:
    make_site("site-a")
    make_site("site-b")
    ConcurrencyLimit.objects.create(name="db", maximum=2)
    text = "concurrency_limits = db\nqueue\n"
    dags = [submit(NODE, description_text=text, description_name="g.sub") for _ in range(3)]

    negotiation.run_cycle(NOW)
    negotiation.run_cycle(NOW + timedelta(seconds=5))

    last = match(dags[2])
    assert Dag.objects.filter(state="running").count() == 2
    assert last.unmatched_kind == Kind.LIMIT
    assert "limit db" in last.unmatched_reason
    assert "2 of 2" in last.unmatched_reason


def test_who_used_less_is_served_first(submit, make_site, alice: User, charlie: User) -> None:
    make_site("site-a", max_matches=1)
    Submitter.objects.create(user=alice, real_priority=50.0, charged_at=NOW)
    Submitter.objects.create(user=charlie, real_priority=0.5, charged_at=NOW)
    first, second = submit(NODE), submit(NODE, owner=charlie)

    negotiation.run_cycle(NOW)

    assert Dag.objects.get(pk=second.pk).state == "running"
    assert Dag.objects.get(pk=first.pk).state == "idle"


def test_running_jobs_are_charged_to_their_submitter(submit, make_site, alice: User) -> None:
    make_site("site-a")
    group = AccountingGroup.objects.create(name="physics", quota=1)
    group.members.add(alice)
    in_its_name = {"description_text": "accounting_group = physics\n", "description_name": "g.sub"}
    match(submit(NODE, **in_its_name))
    assert claim_one() is not None

    assert demand.used_slots() == {(alice.pk, group.pk): 1.0}

    negotiation.run_cycle(NOW + timedelta(hours=1))
    assert Submitter.objects.get(user=alice, group=group).used_slots == 1.0


def test_a_job_is_charged_for_the_cores_that_its_pilot_gave_it(
    submit, make_site, alice: User
) -> None:
    make_site("site-a", queue={"cores": 8})
    match(submit(NODE, files={"step.sub": "executable = step.sh\n+MaxCpus = 6\nqueue\n"}))
    attempt = claim_one()
    assert attempt is not None
    Attempt.objects.update(cores=6)

    assert demand.used_slots() == {(alice.pk, None): 6.0}


def test_a_group_gets_no_more_than_its_quota(submit, make_site, alice: User) -> None:
    make_site("site-a", max_matches=4)
    group = AccountingGroup.objects.create(name="physics", quota=0.5, accepts_surplus=False)
    dags = [submit(NODE) for _ in range(4)]
    Dag.objects.update(accounting_group=group)

    negotiation.run_cycle(NOW)
    negotiation.run_cycle(NOW + timedelta(seconds=5))

    assert Dag.objects.filter(state="running").count() == 2
    dags[3].refresh_from_db()
    assert dags[3].unmatched_kind == Kind.QUOTA
    assert "physics" in dags[3].unmatched_reason
