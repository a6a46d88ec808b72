"""Exporting and importing sites: what was previewed is stored, all of it or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import factories
from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import AuditEntry
from wms.dags.models import SharedLimit
from wms.dags.services.shared_limits import save_shared_limit
from wms.exchange.site_import import PlanChanged, import_sites, preview_import
from wms.exchange.yaml_writer import export_sites, write_document
from wms.jobs.limits import save_limit
from wms.jobs.models import RunningLimit
from wms.pilots.pressure.pilot_limits import save_limit as save_pilot_limit
from wms.pilots.pressure_models import PilotLimit
from wms.sites.models import Queue, Site, SiteEvent
from wms.sites.services import QueueSpec, SiteSpec, configure_site, save_site

pytestmark = pytest.mark.django_db

HEAD = "format: pilotage-sites\nversion: 1\nsites:\n"
ACTOR = factories.SYSTEM


def _rich_site(name: str = "UW") -> Site:
    """A site with one of everything that is exported."""
    site = factories.site(name, queues=("short", "long"), attributes='Kind = "tier 2"\nDisks = 3')
    save_limit(RunningLimit(site=site, job_type="User", maximum=9), actor=ACTOR)
    save_pilot_limit(PilotLimit(scope="site", site=site, max_pilots=99), actor=ACTOR)
    alice = factories.person("alice")
    save_shared_limit(SharedLimit(site=site, owner=alice, max_jobs=7, note="disks"), actor=ACTOR)
    return site


def _stored() -> list[int]:
    return [model.objects.count() for model in (Site, Queue, RunningLimit, AuditEntry, SiteEvent)]


def _import(text: str, actor: Actor = ACTOR, reason: str = "") -> Any:
    return import_sites(
        text, token=preview_import(text, actor=actor).token, actor=actor, reason=reason
    )


def test_what_was_exported_changes_nothing_when_it_is_imported() -> None:
    _rich_site()
    _rich_site("Florida")
    before = _stored()

    plan = _import(export_sites(ACTOR))

    assert plan.counts == {"created": 0, "changed": 0, "unchanged": 12, "refused": 0}
    assert _stored() == before


def test_what_was_exported_makes_the_same_sites_where_there_are_none() -> None:
    _rich_site()
    text = export_sites(ACTOR)
    Site.objects.all().delete()

    plan = _import(text)

    assert plan.counts["created"] == 6
    assert export_sites(ACTOR) == text


_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0;"), max_size=40)
_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
_TAGS = st.lists(
    st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=9),
    max_size=3,
    unique=True,
)
_STRINGS = st.text(st.characters(codec="ascii", categories=("L", "N", "Zs")), max_size=30)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    name=_NAMES,
    queue=_NAMES,
    tags=_TAGS,
    numbers=st.lists(st.integers(1, 2**31 - 1), min_size=3, max_size=3),
    attenuation=st.floats(1, 1e6),
    words=_STRINGS,
    values=st.lists(_WORDS, max_size=3),
)
def test_any_site_goes_out_and_in_without_a_change(
    name: str,
    queue: str,
    tags: list[str],
    numbers: list[int],
    attenuation: float,
    words: str,
    values: list[str],
) -> None:
    spec = SiteSpec(
        name=name,
        max_matches=numbers[0],
        group_size=numbers[1],
        requirements=f'CurMatches < {numbers[2]} // {words}\n|| TARGET.Owner == "{words}"',
        attributes=f'Words = "{words}"',
        environment="\n".join(f"V{i}={_one_line(each)}" for i, each in enumerate(values)),
    )
    queues = [QueueSpec(name=queue, element="host", tags=tags, attenuation=attenuation)]

    with transaction.atomic():
        configure_site(spec, queues, actor=ACTOR)
        text = export_sites(ACTOR)
        plan = preview_import(text, actor=ACTOR)
        transaction.set_rollback(True)

    assert plan.counts == {"created": 0, "changed": 0, "unchanged": 2, "refused": 0}, plan.steps


def _one_line(text: str) -> str:
    return " ".join(text.split()) if text.isprintable() else "x"


def test_a_preview_stores_nothing() -> None:
    _rich_site()
    before, text = _stored(), export_sites(ACTOR)

    plan = preview_import(
        text.replace("max_matches: 100", "max_matches: 5") + "  - name: New\n", actor=ACTOR
    )

    assert (plan.count("changed"), plan.count("created")) == (1, 1)
    assert _stored() == before
    assert Site.objects.get().max_matches == 100


def test_a_preview_tells_every_change_with_its_line() -> None:
    factories.site("UW")
    text = f"{HEAD}- name: UW\n  rank: '5'\n  queues:\n  - name: short\n    cores: 8\n"

    steps = preview_import(text, actor=ACTOR).steps

    assert [(step.kind, step.title, step.line, step.outcome) for step in steps] == [
        ("site", "UW", 4, "changed"),
        ("queue", "UW/short", 7, "changed"),
    ]
    assert [(c.name, c.old, c.new) for step in steps for c in step.changes] == [
        ("rank", "0.0", "5"),
        ("cores", 1, 8),
    ]


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("- name: UW\n  rank: '1 +'\n", 5, "rank: line 1 of it: not a ClassAd expression"),
        ("- name: UW\n  max_matches: -1\n", 5, "max_matches: "),
        ("- name: '../x'\n", 4, "name: Use letters"),
        ("- name: UW\n  queues:\n  - name: short\n    cores: 0\n", 7, "cores: "),
        ("- name: UW\n  queues:\n  - name: short\n    settings: {odd: 1}\n", 7, "settings: "),
        ("- name: UW\n  queues:\n  - name: short\n    owner: nobody\n", 7, "there is no user"),
        ("- name: UW\n  queues:\n  - name: new\n", 6, "element: "),
        ("- name: UW\n  running_limits:\n  - job_type: User\n", 6, "maximum: "),
        ("- name: Bad\n  rank: ')'\n  queues:\n  - name: q\n", 7, "is not there and is not made"),
    ],
)
def test_a_refusal_is_told_at_its_line_and_nothing_is_stored(
    body: str, line: int, words: str
) -> None:
    factories.site("UW")
    good = "- name: Good\n"
    before = _stored()

    plan = preview_import(f"{HEAD}{body}{good}", actor=ACTOR)

    faults = [(each.line, each.message) for step in plan.steps for each in step.faults]
    assert any(at == line and words in message for at, message in faults), faults
    with pytest.raises(PlanChanged):
        import_sites(f"{HEAD}{body}{good}", token=plan.token, actor=ACTOR)
    assert _stored() == before


def test_what_was_changed_since_the_preview_is_not_overwritten() -> None:
    site = factories.site("UW")
    text = f"{HEAD}- name: UW\n  max_matches: 5\n"
    token = preview_import(text, actor=ACTOR).token
    site.max_matches = 50
    save_site(site, actor=ACTOR)

    with pytest.raises(PlanChanged) as caught:
        import_sites(text, token=token, actor=ACTOR)

    assert Site.objects.get().max_matches == 50
    [change] = caught.value.plan.steps[0].changes
    assert (change.old, change.new) == (50, 5)


def test_another_document_than_the_one_previewed_is_refused() -> None:
    factories.site("UW")
    token = preview_import(f"{HEAD}- name: UW\n  max_matches: 5\n", actor=ACTOR).token

    with pytest.raises(PlanChanged):
        import_sites(f"{HEAD}- name: UW\n  max_matches: 6\n", token=token, actor=ACTOR)


def test_an_import_is_audited_as_a_whole_and_by_object() -> None:
    olga = Actor.person(factories.person("olga"))

    _import(f"{HEAD}- name: UW\n  queues:\n  - {{name: q, element: host}}\n", olga, "new site")

    entries = AuditEntry.objects.filter(actor="olga").order_by("pk")
    assert [each.target for each in entries] == ["site UW", "queue UW/q", "sites"]
    assert {each.reason for each in entries} == {"new site"}
    assert entries[2].facts["created"] == 2


def test_nothing_that_is_not_named_is_touched() -> None:
    _rich_site()

    _import(f"{HEAD}- name: UW\n  queues:\n  - name: short\n    cores: 4\n")

    assert Queue.objects.get(name="short").memory_mb == 4000
    assert Queue.objects.get(name="short").cores == 4
    assert Queue.objects.count() == 2
    assert RunningLimit.objects.count() == 1


@pytest.fixture
def tinas() -> SimpleNamespace:
    """Tina, who administers UW and not Florida."""
    tina = factories.person("tina")
    own, other = _rich_site("UW"), _rich_site("Florida")
    save_site(own, actor=ACTOR, administrators=[tina])
    return SimpleNamespace(actor=Actor.person(tina), own=own, other=other)


def test_an_administrator_exports_own_sites_only(tinas: SimpleNamespace) -> None:
    document = yaml.safe_load(export_sites(tinas.actor))

    assert [site["name"] for site in document["sites"]] == ["UW"]
    assert yaml.safe_load(export_sites(tinas.actor, ["Florida"]))["sites"] == []


def test_an_administrator_imports_own_sites_only(tinas: SimpleNamespace) -> None:
    both = export_sites(ACTOR)

    plan = preview_import(both.replace("max_matches: 100", "max_matches: 5"), actor=tinas.actor)

    of_own = {step.outcome for step in plan.steps if step.title.startswith("UW")}
    of_other = {step.outcome for step in plan.steps if step.title.startswith("Florida")}
    assert of_own == {"changed", "unchanged"}
    assert of_other == {"refused"}


@pytest.mark.parametrize("name", ["vera", "alice"])
def test_who_configures_nothing_exports_and_imports_nothing(name: str) -> None:
    actor = Actor.person(factories.person(name))

    with pytest.raises(NotPermitted):
        export_sites(actor)
    with pytest.raises(NotPermitted):
        preview_import(f"{HEAD}- name: UW\n", actor=actor)


def test_the_number_of_queries_of_an_export_does_not_grow() -> None:
    _rich_site()
    with CaptureQueriesContext(connection) as few:
        write_document(Site.objects.all())
    for number in range(5):
        _rich_site(f"S{number}")
    with CaptureQueriesContext(connection) as many:
        write_document(Site.objects.all())

    assert len(few) == len(many) == 6


def test_no_credential_is_exported() -> None:
    site = factories.site("UW")
    for queue in site.queues.all():
        queue.settings = {"directory": "/pilots", "ssh": {
            "host": "login", "key_file": "/keys/uw", "known_hosts_file": "/keys/known",
        }}  # fmt: skip
        queue.save(update_fields=["settings"])

    [told] = yaml.safe_load(export_sites(ACTOR))["sites"]

    # Where keys are, and nothing of what is in them: settings never hold any.
    assert told["queues"][0]["settings"]["ssh"]["key_file"] == "/keys/uw"
    assert "administrators" not in told
