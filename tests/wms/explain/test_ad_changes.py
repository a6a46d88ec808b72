"""What-if answers: the same as after the written change, and nothing is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.negotiation.cycle_sites import Offer
from matching.negotiation.decision import Usage
from matching.negotiation.explanation import explain, with_changes
from matching.negotiation.site_explanation import explain_site
from tests.matching.matchmaking import NOW, dag_ads, match, offer, request, site_ads
from wms.core.models import User
from wms.dags.models import Dag
from wms.explain.ad_changes import WhatIfChanges, changed_offers
from wms.explain.answers import answer_for_dag, answer_for_site
from wms.sites.ads import publish_ads
from wms.sites.models import Site

_sites = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), site_ads), min_size=1, max_size=3)


def _offers(sites: list[tuple[int, int, dict[str, str]]]) -> list[Offer]:
    return [offer(n, f"s{n}", now, most, **ad) for n, (now, most, ad) in enumerate(sites)]


@pytest.mark.slow
@given(_sites, dag_ads)
def test_a_what_if_that_changes_nothing_is_the_explanation(
    sites: list[tuple[int, int, dict[str, str]]], wish: dict[str, str]
) -> None:
    asking, offers = request(1, **wish), _offers(sites)
    same = WhatIfChanges(
        dag=wish,
        sites={each.name: {name: str(each.ad.lookup(name)) for name in each.ad} for each in offers},
    )

    changed = with_changes(asking, same.dag)
    tried = changed_offers(offers, same, [changed])

    assert explain(changed, tried, Usage(), {}, NOW) == explain(asking, offers, Usage(), {}, NOW)
    for before, after in zip(offers, tried, strict=True):
        assert explain_site(after, [changed], NOW) == explain_site(before, [asking], NOW)


@pytest.mark.slow
@given(_sites, dag_ads, dag_ads, site_ads)
def test_a_changed_dag_would_match_exactly_if_the_negotiator_matches_it_so(
    sites: list[tuple[int, int, dict[str, str]]],
    wish: dict[str, str],
    change: dict[str, str],
    site_change: dict[str, str],
) -> None:
    changes = WhatIfChanges(dag=change, sites={"s0": site_change})
    changed = with_changes(request(1, **wish), changes.dag)
    tried = changed_offers(_offers(sites), changes, [changed])

    found = explain(changed, tried, Usage(), {}, NOW)

    assert found.would_match == bool(match([changed], tried, Usage(), {}).matches)


def test_an_answer_without_changes_has_no_after(submit, make_site, alice: User) -> None:
    make_site("site-a")
    dag = submit("JOB A step.sub")
    publish_ads({}, now=NOW)

    plain = answer_for_dag(alice, dag.pk, now=NOW)
    unchanged = answer_for_dag(alice, dag.pk, now=NOW, changes=WhatIfChanges())

    assert unchanged == plain
    assert plain.after is None
    assert answer_for_site(alice, "site-a", now=NOW).after is None


def test_a_tried_limit_of_a_site_takes_what_the_written_one_takes(
    submit, make_site, alice: User
) -> None:
    site = make_site("site-a", max_matches=0)
    dag: Dag = submit("JOB A step.sub")
    publish_ads({}, now=NOW)
    changes = WhatIfChanges(sites={"site-a": {"MaxMatches": "2"}})

    tried = answer_for_dag(alice, dag.pk, now=NOW, changes=changes)
    assert Site.objects.get().max_matches == 0
    Site.objects.filter(pk=site.pk).update(max_matches=2)
    publish_ads({}, now=NOW)
    written = answer_for_dag(alice, dag.pk, now=NOW)

    assert tried.after is not None
    assert not tried.explanation.would_match
    assert tried.after.would_match
    assert written.explanation.stands == tried.after.stands
