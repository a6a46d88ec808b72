"""Answers why a DAG has no site, why a site takes no DAG, and for pasted ads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections

from matching.negotiation.explanation import MatchVerdict
from matching.negotiation.near_misses import NearMiss
from matching.negotiation.unmatched_reasons import SiteStanding
from tests.wms.conftest import SUBMIT_FILE
from tests.wms.dags.driving import NOW, match
from wms.core.actors import Actor
from wms.core.errors import Busy, InvalidInput, NotFound
from wms.core.heavy import heavy_place
from wms.core.models import User
from wms.dags.models import Dag, MatchRecord
from wms.dags.negotiation import cycle as negotiation
from wms.dags.services.dags import hold_dags
from wms.explain import answers as explaining
from wms.explain.ad_changes import WhatIfChanges
from wms.explain.answers import (
    AvoidedSite,
    Turn,
    answer_for_ad,
    answer_for_dag,
    answer_for_job,
    answer_for_site,
    answer_for_task_queue,
)
from wms.sites.ads import publish_ads

NODE = "JOB A step.sub"
LATER = NOW + timedelta(days=3650)


def wanting(text: str) -> dict[str, str]:
    return {"description_text": f"{text}\nqueue\n", "description_name": "g.sub"}


def test_a_dag_that_no_negotiation_has_seen_is_not_looked_at_yet(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    publish_ads({}, now=NOW)
    dag = submit(NODE)

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.verdict is MatchVerdict.NOT_LOOKED_AT
    assert [candidate.site for candidate in answer.explanation.candidates] == ["site-a"]
    assert answer.turn == Turn(submitter_place=1, submitters=1, own_place=1, own_dags=1)


def test_a_dag_that_others_were_served_before_waits_its_turn(
    submit, make_site, alice: User
) -> None:
    make_site("site-a")
    dag = submit(NODE)
    negotiation.run_cycle(LATER)
    Dag.objects.filter(pk=dag.pk).update(state="idle", site=None)

    assert answer_for_dag(alice, dag.pk, now=LATER).verdict is MatchVerdict.WAITING


def test_a_dag_that_no_site_can_ever_take_is_told_the_nearest_miss(
    submit, make_site, alice: User
) -> None:
    make_site("small", attributes="Memory = 8192")
    make_site("large", attributes="Memory = 12288")
    dag = match(submit(NODE, **wanting("+Need = 16384\nrequirements = TARGET.Memory >= Need")))

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.verdict is MatchVerdict.NEVER
    assert answer.explanation.conjuncts[0].alone == 0
    assert answer.misses[:2] == (
        NearMiss("Need", "16384", "12288", before=0, after=1),
        NearMiss("Need", "16384", "8192", before=0, after=2),
    )


def test_a_dag_whose_sites_are_all_full_or_closed_is_not_now(
    submit, make_site, alice: User
) -> None:
    make_site("site-a", max_matches=0)
    make_site("site-b", is_enabled=False)
    dag = match(submit(NODE))

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.verdict is MatchVerdict.NOT_NOW
    assert answer.explanation.stands == {
        SiteStanding.FULL: ("site-a",),
        SiteStanding.CLOSED: ("site-b",),
    }


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("running", MatchVerdict.BOUND),
        ("completed", MatchVerdict.ENDED),
        ("removed", MatchVerdict.ENDED),
    ],
)
def test_a_dag_that_is_not_idle_is_told_its_state(
    submit, make_site, alice: User, state: str, verdict: MatchVerdict
) -> None:
    make_site("site-a")
    dag = match(submit(NODE))
    Dag.objects.filter(pk=dag.pk).update(state=state)

    assert answer_for_dag(alice, dag.pk, now=NOW).verdict is verdict


def test_a_held_dag_is_not_allowed(submit, make_site, alice: User) -> None:
    make_site("site-a")
    dag = submit(NODE)
    hold_dags([dag.pk], actor=Actor.person(alice), reason="wait for data")

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.verdict is MatchVerdict.NOT_ALLOWED
    assert "wait for data" in answer.summary


def test_what_if_shows_counts_before_and_after_and_writes_nothing(
    submit, make_site, alice: User, django_assert_num_queries
) -> None:
    make_site("site-a", attributes="Memory = 4096")
    dag = match(submit(NODE, **wanting("requirements = TARGET.Memory >= 8192")))
    before = list(Dag.objects.filter(pk=dag.pk).values())

    of_dag = WhatIfChanges(dag={"requirements": "TARGET.Memory >= 4096"})
    of_site = WhatIfChanges(sites={"site-a": {"Memory": "9000"}})

    for changes in (of_dag, of_site):
        answer = answer_for_dag(alice, dag.pk, now=NOW, changes=changes)
        assert (answer.explanation.willing, answer.after.willing) == (0, 1)
        assert answer.after.would_match
    assert list(Dag.objects.filter(pk=dag.pk).values()) == before


@pytest.mark.parametrize(
    ("changes", "field", "fact"),
    [
        (WhatIfChanges(dag={"Requirements": "((("}), "dag", "Requirements"),
        (WhatIfChanges(sites={"nowhere": {"Memory": "1"}}), "sites", "nowhere"),
        (WhatIfChanges(dag={"Rank": 'eval("1")'}), "dag", "eval"),
    ],
)
def test_changes_at_fault_are_refused(
    submit, make_site, alice: User, changes: WhatIfChanges, field: str, fact: str
) -> None:
    make_site("site-a")
    dag = match(submit(NODE))

    with pytest.raises(InvalidInput) as caught:
        answer_for_dag(alice, dag.pk, now=NOW, changes=changes)
    [finding] = caught.value.findings
    assert finding.field == field
    assert fact in finding.message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (WhatIfChanges(dag={"A": "MY.B", "B": "MY.A"}), "dag"),
        (WhatIfChanges(dag={f"A{n}": f"A{n + 1} + A{n + 1}" for n in range(40)}), "dag"),
        (WhatIfChanges(sites={"site-a": {"A": "MY.B", "B": "MY.A"}}), "sites"),
        (
            WhatIfChanges(
                dag={"Rank": "+".join(["TARGET.Many"] * 400), "X": '"' + "x" * 1000 + '"'},
                sites={"site-a": {"Many": "strcat(TARGET.X, TARGET.X)"}},
            ),
            "sites",
        ),
    ],
)
def test_changes_that_cost_too_much_together_are_refused(
    submit, make_site, alice: User, changes: WhatIfChanges, field: str
) -> None:
    make_site("site-a")
    publish_ads({}, now=NOW)
    dag = submit(NODE)

    with pytest.raises(InvalidInput) as caught:
        answer_for_dag(alice, dag.pk, now=NOW, changes=changes)
    assert [finding.field for finding in caught.value.findings] == [field]


def test_a_pasted_ad_is_explained_for_its_reader(make_site, alice: User) -> None:
    make_site("site-a", requirements='CurMatches < MaxMatches && TARGET.Owner == "alice"')
    publish_ads({}, now=NOW)

    answer = answer_for_ad(alice, '[Requirements = Name == "site-a"]', now=NOW)

    assert answer.verdict is MatchVerdict.WOULD_MATCH


def test_a_pasted_ad_at_fault_is_refused_with_its_line(alice: User) -> None:
    with pytest.raises(InvalidInput) as caught:
        answer_for_ad(alice, "A = 1\nRequirements = ((\n", now=NOW)

    assert caught.value.findings[0].line == 2


def test_a_site_is_explained_by_the_idle_dags(submit, make_site, alice: User) -> None:
    make_site("site-a", max_matches=0)
    match(submit(NODE))
    submit(NODE, **wanting('requirements = TARGET.Name == "elsewhere"'))

    answer = answer_for_site(
        alice, "site-a", now=NOW, changes=WhatIfChanges(sites={"site-a": {"MaxMatches": "2"}})
    )

    assert answer.explanation.stands == {SiteStanding.FULL: 1, SiteStanding.REFUSED_BY_DAG: 1}
    assert answer.after.stands == {SiteStanding.FREE: 1, SiteStanding.REFUSED_BY_DAG: 1}


def test_what_is_not_there_cannot_be_explained(alice: User) -> None:
    for ask in (answer_for_dag, answer_for_job, answer_for_task_queue):
        with pytest.raises(NotFound):
            ask(alice, 4711, now=NOW)
    with pytest.raises(NotFound):
        answer_for_site(alice, "nowhere", now=NOW)


def test_a_dag_that_avoids_a_site_is_told_until_when(submit, make_site, alice: User) -> None:
    site = make_site("site-a")
    dag = submit(NODE)
    until = NOW + timedelta(hours=1)
    MatchRecord.objects.create(
        dag=dag, site=site, matched_at=NOW, ended_at=NOW, end="rematch", avoided_until=until
    )
    publish_ads({}, now=NOW)

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.verdict is MatchVerdict.NOT_NOW
    assert answer.avoided == (AvoidedSite("site-a", until, ""),)
    assert answer.explanation.stands == {SiteStanding.AVOIDED: ("site-a",)}


@pytest.mark.slow
def test_a_dag_that_no_queue_anywhere_can_run_is_told_why_it_left_each_site(
    submit, make_site, alice: User
) -> None:
    for name in ("site-a", "site-b"):
        make_site(name, attributes='Tag = "gpu"')
    # What only the site knows is compared with its queues when the node is submitted.
    files = {"step.sub": f'+Tags = "$$(Tag)"\n{SUBMIT_FILE}', "step.sh": "#!/bin/sh\n"}
    dag = submit(NODE, files=files)
    for _ in range(3):
        match(dag)

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert [avoided.site for avoided in answer.avoided] == ["site-a", "site-b"]
    for avoided in answer.avoided:
        assert avoided.site in avoided.reason
        assert "gpu" in avoided.reason
    # Reasons that differ in the name of the site only are merged.
    for text in (dag.unmatched_reason, answer.summary):
        assert text.count("gpu") == 1
        assert "site-a, site-b: node A" in text


def test_a_dag_is_told_of_a_site_the_reason_of_its_last_stay(
    submit, make_site, alice: User
) -> None:
    site = make_site("site-a")
    dag = submit(NODE)
    for minute, reason in enumerate(["too slow", "", "disk full"]):
        then = NOW + timedelta(minutes=minute)
        MatchRecord.objects.create(
            dag=dag, site=site, matched_at=then, ended_at=then, end="rematch", reason=reason,
            avoided_until=then + timedelta(hours=1),
        )  # fmt: skip
    publish_ads({}, now=NOW)

    answer = answer_for_dag(alice, dag.pk, now=NOW)
    assert [avoided.reason for avoided in answer.avoided] == ["disk full"]


def test_of_very_many_sites_that_a_dag_avoids_the_first_are_told(
    submit, make_site, alice: User
) -> None:
    dag = submit(NODE)
    for number in range(7):
        site = make_site(f"site-{number}")
        MatchRecord.objects.create(
            dag=dag, site=site, matched_at=NOW, ended_at=NOW, end="rematch",
            avoided_until=NOW + timedelta(hours=1),
        )  # fmt: skip
    publish_ads({}, now=NOW)

    answer = answer_for_dag(alice, dag.pk, now=NOW)

    assert answer.summary.count("2026-11-20 13:00 UTC") == 5
    assert "2 more" in answer.summary
    assert len(answer.avoided) == 7


def test_a_dag_that_the_negotiation_had_no_time_for_is_not_looked_at_yet(
    submit, make_site, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a")
    dag = submit(NODE)
    monkeypatch.setattr(negotiation, "DECISION_S", -1.0)
    negotiation.run_cycle(LATER)

    assert answer_for_dag(alice, dag.pk, now=LATER).verdict is MatchVerdict.NOT_LOOKED_AT


def test_of_very_many_different_dags_the_first_are_looked_at(
    submit, make_site, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site("site-a")
    publish_ads({}, now=NOW)
    for number in range(4):
        submit(NODE, **wanting(f"requirements = TARGET.Speed =!= {number}"))
    monkeypatch.setattr(explaining, "_MAX_ADS", 3)

    answer = answer_for_site(alice, "site-a", now=NOW)

    assert (answer.explanation.dags, answer.explanation.unseen) == (3, 1)


@pytest.mark.django_db(transaction=True)
def test_each_user_has_few_questions_at_a_time(
    make_site, alice: User, charlie: User, settings
) -> None:
    settings.PILOTAGE = {**settings.PILOTAGE, "MAX_HEAVY_REQUESTS_PER_USER": 1}
    make_site("site-a")
    publish_ads({}, now=NOW)

    def ask_at_the_same_time() -> list[str]:
        results = []
        for user in (alice, charlie):
            try:
                results.append(answer_for_ad(user, "Rank = 1", now=NOW).verdict.value)
            except Busy:
                results.append("busy")
        connections["default"].close()
        return results

    with heavy_place(alice), ThreadPoolExecutor(1) as pool:
        refused, answered = pool.submit(ask_at_the_same_time).result()

    assert (refused, answered) == ("busy", MatchVerdict.WOULD_MATCH.value)
