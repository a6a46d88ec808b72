"""Advertised ads: what is taken and what is refused, and that replays and races do no harm."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted
from wms.core.models import AuditEntry, User
from wms.sites.ads import Load, publish_ads, read_ads
from wms.sites.advertising import advertise, invalidate
from wms.sites.models import Advertisement, Site, SiteEvent
from wms.sites.standing import standings

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
AD = 'Name = "site-a"\nUpdateSequenceNumber = 5\nHas_CVMFS = True\n'


@pytest.fixture
def operator(olga: User) -> Actor:
    return Actor.person(olga)


def published(site: Site) -> dict[str, str]:
    publish_ads({}, now=NOW)
    [ad] = [each.ad for each in read_ads(NOW) if each.site_id == site.pk]
    return {name: repr(ad.lookup(name)).strip() for name in ad.keys()}  # noqa: SIM118


def test_what_is_advertised_is_in_the_ad_and_wins(make_site, operator: Actor) -> None:
    site = make_site(attributes="Speed = 1\nMemory = 2000", rank="1.0", environment="A=1")

    advertise(
        AD + 'SPEED = 3\nRank = 7\nSiteEnvironment = "B=2"\nWantAdRevaluate = false\n',
        actor=operator,
        now=NOW,
    )

    ad = published(site)
    assert ad["SPEED"] == "3"
    assert ad["Memory"] == "2000"
    assert ad["Has_CVMFS"] == "true"
    assert ad["Rank"] == "7"
    assert ad["SiteEnvironment"] == '"B=2"'
    assert ad["WantAdRevaluate"] == "false"
    assert ad["Name"] == '"site-a"'
    assert int(ad["UpdateSequenceNumber"]) >= int(NOW.timestamp())
    assert "ClassAdLifetime" not in ad


def test_advertised_requirements_only_narrow(make_site, operator: Actor) -> None:
    site = make_site(requirements="CurMatches < MaxMatches // room")

    advertise(AD + "Requirements = false || TARGET.Cores == 1", actor=operator, now=NOW)

    own, said = published(site)["Requirements"].split(" && ")
    assert (own, said) == ("(CurMatches < MaxMatches)", "(false || TARGET.Cores == 1)")


@pytest.mark.parametrize(("said", "most"), [(1, "1"), (9, "4"), (0, "0")])
def test_advertised_max_matches_only_lower(
    make_site, operator: Actor, said: int, most: str
) -> None:
    site = make_site(max_matches=4)

    advertise(f"{AD}MaxMatches = {said}", actor=operator, now=NOW)

    assert published(site)["MaxMatches"] == most


def test_attributes_of_condor_that_mean_nothing_here_are_kept(make_site, operator: Actor) -> None:
    site = make_site()

    advertise(AD + 'StartdIpAddr = "<127.0.0.1:1>"\nCurrentRank = 0.0', actor=operator, now=NOW)

    assert published(site)["StartdIpAddr"] == '"<127.0.0.1:1>"'


def test_all_three_formats_are_taken(make_site, operator: Actor) -> None:
    site = make_site()

    for number, text in enumerate(
        [
            'Name = "site-a"\nUpdateSequenceNumber = {}\nQ = 1 + 1',
            '[ Name = "site-a"; UpdateSequenceNumber = {}; Q = 1 + 1 ]',
            '{{"Name": "site-a", "UpdateSequenceNumber": {}, "Q": "\\/Expr(1 + 1)\\/"}}',
        ]
    ):
        advertise(text.format(number), actor=operator, now=NOW)
        assert published(site)["Q"] == "1 + 1"


@pytest.mark.parametrize("sequence", [4, 5])
def test_a_number_that_is_not_larger_is_refused_and_changes_nothing(
    make_site, operator: Actor, sequence: int
) -> None:
    make_site()
    advertise(AD, actor=operator, now=NOW)
    before = Advertisement.objects.values().get()

    text = AD.replace("= 5", f"= {sequence}").replace("True", "False")
    with pytest.raises(Conflict, match=f"{sequence} is not larger than 5"):
        advertise(text, actor=operator, now=NOW + timedelta(seconds=9))

    assert Advertisement.objects.values().get() == before


def test_the_number_is_the_one_after_the_last_unless_given(make_site, operator: Actor) -> None:
    make_site()
    numbers = []

    for line in ("", "", "UpdateSequenceNumber = 12", ""):
        sent = advertise(f'Name = "site-a"\n{line}', actor=operator, now=NOW)
        numbers.append(sent.advertisement.sequence)

    assert numbers == [1, 2, 12, 13]


def test_a_number_that_would_keep_later_ads_out_is_refused(make_site, operator: Actor) -> None:
    make_site()
    tomorrow = int(NOW.timestamp()) + 86_400

    advertise(f'Name = "site-a"\nUpdateSequenceNumber = {tomorrow}', actor=operator, now=NOW)
    with pytest.raises(InvalidInput, match=str(tomorrow)) as refused:
        advertise(
            f'Name = "site-a"\nUpdateSequenceNumber = {tomorrow + 1}', actor=operator, now=NOW
        )
    assert [each.field for each in refused.value.findings] == ["UpdateSequenceNumber"]


def test_requirements_that_are_no_truth_value_are_refused(make_site, operator: Actor) -> None:
    make_site()

    with pytest.raises(InvalidInput) as advertised:
        advertise('Name = "site-a"\nRequirements = 5', actor=operator, now=NOW)
    with pytest.raises(InvalidInput) as configured:
        make_site("site-b", requirements='"yes"')
    assert [each.field for each in advertised.value.findings] == ["Requirements"]
    assert [each.field for each in configured.value.findings] == ["requirements"]


@pytest.mark.parametrize(
    ("text", "field", "line", "message"),
    [
        ("Has_CVMFS = True", "Name", None, "needs the Name"),
        ('Name = strcat("site", "-a")', "Name", None, "in quotes"),
        ('Name = "site-b"', "Name", None, "no site site-b is configured"),
        ('Name = "site-a"\nX = (', "X", 2, "not a ClassAd expression"),
        ('Name = "site-a"\nX', "ad", 2, "expected `Name = expression`"),
        (AD + "curmatches = 0", "curmatches", None, "Pilotage counts what is bound"),
        (AD + "GroupSize = 1", "GroupSize", None, "in the configuration"),
        (AD + 'MyType = "Job"', "MyType", None, 'must be "Machine"'),
        (AD + 'TargetType = "Machine"', "TargetType", None, 'must be "Job"'),
        (AD + "ClassAdLifetime = 0", "ClassAdLifetime", None, "from 1 to 604800"),
        (AD + "ClassAdLifetime = 604801", "ClassAdLifetime", None, "from 1 to 604800"),
        (AD + "ClassAdLifetime = 60 * 5", "ClassAdLifetime", None, "without an expression"),
        ('Name = "site-a"\nUpdateSequenceNumber = -1', "UpdateSequenceNumber", None, "from 0"),
        (
            'Name = "site-a"\nUpdateSequenceNumber = 9223372036854775808',
            "UpdateSequenceNumber",
            None,
            "whole number",
        ),
        (AD + "MaxMatches = Cores", "MaxMatches", None, "whole number"),
        (AD + "WantAdRevaluate = 1", "WantAdRevaluate", None, "true or false"),
        (AD + "SiteEnvironment = 3", "SiteEnvironment", None, "a string like"),
        (AD + 'SiteEnvironment = "A B"', "SiteEnvironment", None, "expected NAME=value"),
        (AD + "A = B\nB = A", "A", None, "in a circle"),
        (AD + "Speed = Fast", "Fast", None, "site-a: attributes refer to each other in a circle"),
        (AD + 'Requirements = eval("true")', "Requirements", None, "eval cannot be used"),
        (AD + 'A = "' + "x" * 70_000 + '"', "ad", None, "larger than 65536 bytes"),
        (AD + 'A = "' + "x" * 40_000 + '"', "ad", None, "the site's ad would be larger"),
    ],
)
def test_an_ad_with_a_fault_is_refused_with_its_place(
    make_site, operator: Actor, text: str, field: str, line: int | None, message: str
) -> None:
    make_site(attributes=f'Fast = Speed\nNote = "{"n" * 40_000}"')

    with pytest.raises(InvalidInput) as caught:
        advertise(text, actor=operator, now=NOW)

    [finding] = caught.value.findings
    assert (finding.field, finding.line) == (field, line)
    assert message in finding.message
    assert not Advertisement.objects.exists()


def test_all_faults_are_told_at_once(operator: Actor) -> None:
    with pytest.raises(InvalidInput) as caught:
        advertise("CurMatches = 0\nMatchUnit = 1\nClassAdLifetime = x", actor=operator, now=NOW)

    assert [finding.field for finding in caught.value.findings] == [
        "CurMatches", "MatchUnit", "Name", "ClassAdLifetime",
    ]  # fmt: skip


def test_a_configuration_that_does_not_go_with_what_is_advertised_is_refused(
    make_site, operator: Actor
) -> None:
    make_site()
    advertise(AD + "Fast = Speed", actor=operator, now=NOW)

    with pytest.raises(InvalidInput, match=r"advertised.*circle"):
        make_site(attributes="Speed = Fast")


def test_only_operators_advertise(make_site, sam: User) -> None:
    make_site()

    with pytest.raises(NotPermitted, match="sam"):
        advertise(AD, actor=Actor.person(sam), now=NOW)
    with pytest.raises(NotPermitted, match="sam"):
        invalidate("site-a", actor=Actor.person(sam), now=NOW)


def test_an_ad_that_is_not_renewed_expires_and_the_site_stands_so(
    make_site, operator: Actor
) -> None:
    site = make_site()
    advertise(AD + "ClassAdLifetime = 60", actor=operator, now=NOW)
    late = NOW + timedelta(seconds=60)

    assert standings(late - timedelta(seconds=1))[site.pk].kind == ""
    standing = standings(late)[site.pk]
    assert standing.kind == "expired"
    assert "2026-11-20 12:01 UTC" in standing.reason

    advertise(AD.replace("= 5", "= 6"), actor=operator, now=late)
    assert standings(late)[site.pk].kind == ""
    assert standings(late + timedelta(seconds=900))[site.pk].kind == "expired"


def test_an_invalidated_ad_leaves_the_configuration_alone(make_site, operator: Actor) -> None:
    site = make_site(attributes="Speed = 1")
    advertise(AD + "Speed = 2", actor=operator, now=NOW)

    invalidate("site-a", actor=operator, now=NOW)

    assert published(site)["Speed"] == "1"
    assert standings(NOW + timedelta(days=1))[site.pk].kind == ""
    with pytest.raises(NotFound, match="advertises nothing"):
        invalidate("site-a", actor=operator, now=NOW)
    with pytest.raises(NotFound, match="no site nowhere"):
        invalidate("nowhere", actor=operator, now=NOW)


def test_an_invalidated_ad_cannot_be_sent_again(make_site, operator: Actor) -> None:
    make_site()
    advertise(AD, actor=operator, now=NOW)
    invalidate("site-a", actor=operator, now=NOW)

    with pytest.raises(Conflict):
        advertise(AD, actor=operator, now=NOW)

    again = advertise(AD.replace("= 5", "= 6"), actor=operator, now=NOW)
    assert again.is_new


def test_events_tell_of_changes_and_not_of_renewals(make_site, operator: Actor) -> None:
    make_site()
    assert advertise(AD, actor=operator, now=NOW).is_new
    for number in (6, 7):
        assert not advertise(AD.replace("= 5", f"= {number}"), actor=operator, now=NOW).is_new
    advertise(AD.replace("= 5", "= 8").replace("True", "False"), actor=operator, now=NOW)
    invalidate("site-a", actor=operator, now=NOW)

    told = SiteEvent.objects.filter(event__in=["advertise", "invalidate"]).order_by("pk")
    assert [(event.event, event.facts["sequence"]) for event in told] == [
        ("advertise", 5), ("advertise", 8), ("invalidate", 8),
    ]  # fmt: skip
    assert AuditEntry.objects.filter(action="advertise ad", target="site site-a").count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_with_one_number_one_is_taken(make_site, operator: Actor) -> None:
    make_site()
    barrier, outcomes = threading.Barrier(4), []

    def send(value: int) -> None:
        barrier.wait()
        try:
            advertise(f"{AD}Value = {value}", actor=operator, now=NOW)
            outcomes.append("taken")
        except Conflict:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["refused"] * 3 + ["taken"]
    assert Advertisement.objects.count() == 1


def test_the_ad_of_a_site_that_counts_dags(make_site) -> None:
    site = make_site(max_matches=4)

    publish_ads({site.pk: Load(dags=3, unfinished_nodes=700)}, now=NOW)

    [ad] = read_ads(NOW)
    assert (ad.ad.eval("CurMatches"), ad.ad.eval("MaxMatches")) == (3, 4)
    assert ad.group_size is None
    assert site.ad.cur_matches == 3


def test_the_ad_of_a_site_that_counts_jobs(make_site, operator: Actor) -> None:
    site = make_site(max_matches=500, matches_unit="jobs", group_size=50)

    publish_ads({site.pk: Load(dags=3, unfinished_nodes=105)}, now=NOW)

    [ad] = read_ads(NOW)
    assert (ad.ad.eval("CurMatches"), ad.ad.eval("MaxMatches")) == (2.1, 10.0)
    assert (ad.ad.eval("MatchUnit"), ad.ad.eval("GroupSize")) == ("jobs", 50)
    assert ad.group_size == 50.0
    assert site.ad.cur_matches == 105

    advertise(AD + "MaxMatches = 200", actor=operator, now=NOW)
    assert published(site)["MaxMatches"] == "4.000000000000000E+00"


def test_closed_sites_are_published_too(make_site) -> None:
    make_site("on")
    make_site("off", is_enabled=False)

    assert publish_ads({}, now=NOW) == 2
    assert [ad.name for ad in read_ads(NOW)] == ["off", "on"]
    assert read_ads(NOW + timedelta(seconds=901)) == []


def test_a_site_whose_ad_cannot_be_made_disturbs_no_other(make_site) -> None:
    make_site("good")
    make_site("bad")
    Site.objects.filter(name="bad").update(requirements="(")

    assert publish_ads({}, now=NOW) == 1
    assert [ad.name for ad in read_ads(NOW)] == ["good"]
    Site.objects.get(name="good").ad.__class__.objects.update(text="Name = (")
    assert read_ads(NOW) == []


def test_publishing_and_reading_take_few_queries(
    make_site, operator: Actor, django_assert_max_num_queries
) -> None:
    for number in range(7):
        make_site(f"site-{number}")
        advertise(f'Name = "site-{number}"', actor=operator, now=NOW)

    with django_assert_max_num_queries(8):
        publish_ads({}, now=NOW)
    with django_assert_max_num_queries(1):
        assert len(read_ads(NOW)) == 7
    with django_assert_max_num_queries(2):
        assert len(standings(NOW)) == 7
