"""Requirements of jobs against pilots: their value for one, and why no pilot of a queue meets them.

What is known of a queue before its pilots start is their offer, and what checks of their nodes have
published there of late.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import classad2

from matching.ads.classads import evaluate, parse_expression
from matching.ads.expressions import references, split_conjuncts
from matching.task_queues.needs import Needs
from matching.task_queues.published import is_published_name
from matching.task_queues.resources import PILOT_ATTRIBUTES, Resource, needs_ad, pilot_ad

#: Of a pilot whose node, or platform, is not known yet.
_OF_NODES = frozenset({name.lower() for name in PILOT_ATTRIBUTES})
#: Functions that make an expression of a text, or look at an ad as a whole.
_MAKES_NAMES = re.compile(r"eval|unparse", re.IGNORECASE)
_ASKS_UNDEFINED = re.compile(r"=\?=|=!=|\bis(nt)?\b|isundefined|iserror|\?", re.IGNORECASE)
_SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class OfferAd:
    """Ad that a pilot of a queue may have, with its names in lower case.

    `open_names` are attributes that its checks may yet publish; None: any may be.
    `declared` are all that they may publish.
    """

    ad: classad2.ClassAd
    names: frozenset[str]
    open_names: frozenset[str] | None = None
    declared: frozenset[str] = frozenset()

    def is_open(self, name: str) -> bool:
        """Whether an attribute has no value here, but a check may yet publish one."""
        if name in self.names or not is_published_name(name):
            return False
        return self.open_names is None or name in self.open_names

    def is_of_node(self, name: str) -> bool:
        """Whether an attribute has no value here, but will have one on every node."""
        return name not in self.names and (name in _OF_NODES or name.startswith("node"))


def offer_ads(offer: Resource) -> tuple[OfferAd, ...]:
    """Ads that pilots of a queue may have: one for each set of values that was seen there."""
    known = offer.publishes
    if known is None:
        ad = pilot_ad(offer, {})
        return (OfferAd(ad, _names(ad)),)
    ads = [(pilot_ad(offer, {}, values), open_names) for values, open_names in known.sets()]
    return tuple([OfferAd(ad, _names(ad), names, known.declared) for ad, names in ads])


def _names(ad: classad2.ClassAd) -> frozenset[str]:
    return frozenset({name.lower() for name in ad})


def requirements_value(needs: Needs, ad: classad2.ClassAd) -> Any:
    """Value of the requirements for a pilot's ad; True where there are none."""
    if not needs.requirements:
        return True
    return evaluate(parse_expression(needs.requirements), needs_ad(needs), ad)


def offer_refusal(offer: Resource, needs: Needs) -> str:
    """Why no pilot of a queue can take these needs; empty when one may.

    The node is not known yet, so only requirements refuse that are false for any node, or that ask
    for what no check there publishes.
    """
    refusal = offer.sending_refusal(needs)
    if refusal or not needs.requirements:
        return refusal
    return requirements_refusal(offer_ads(offer), needs)


def refused_aspect(offer: Resource, needs: Needs) -> str:
    """The aspect of a queue's offer by which `offer_refusal` refuses these needs; empty if not.

    One of those of `Resource.fresh_aspect`, or sending, or requirements.
    """
    if offer.unsent_reason(needs):
        return "sending"
    return offer.fresh_aspect(needs) or ("requirements" if offer_refusal(offer, needs) else "")


def taking_refusal(offer: Resource, needs: Needs) -> str:
    """Why no pilot of a queue takes these needs, whatever it was sent for; empty when one may.

    As the claim does it: requirements have to be true. What only a node can tell is open.
    """
    refusal = offer.fresh_refusal(needs)
    if refusal or not needs.requirements:
        return refusal
    ads = offer_ads(offer)
    if refusal := requirements_refusal(ads, needs):
        return refusal
    if any(_may_be_met(each, needs) for each in ads):
        return ""
    return f"has requirements that are never true here: {needs.requirements[:_SHOWN_LENGTH]}"


def _may_be_met(offered: OfferAd, needs: Needs) -> bool:
    value = requirements_value(needs, offered.ad)
    return value is True or _may_become_true(needs.requirements, value, offered)


def requirements_refusal(ads: tuple[OfferAd, ...], needs: Needs) -> str:
    """Why requirements are true for none of these ads, whatever the node; empty when they may be.

    Attributes that nobody knows of refuse nothing, but those that a check would have to publish.
    """
    first = ""
    for each in ads:
        reason = _refusal(each, needs)
        if not reason:
            return ""
        first = first or reason
    return first


def _refusal(offered: OfferAd, needs: Needs) -> str:
    value = requirements_value(needs, offered.ad)
    # A fault of a part needs a name with it; few requirements have one.
    if value is True or (value is not False and "_" not in needs.requirements):
        return ""
    own = needs_ad(needs)
    refusals = (_part_refusal(offered, own, part) for part in split_conjuncts(needs.requirements))
    return next(filter(None, refusals), "")


def _part_refusal(offered: OfferAd, own: classad2.ClassAd, part: str) -> str:
    """Why one part of a conjunction keeps the whole from being true; empty when it need not."""
    value = evaluate(parse_expression(part), own, offered.ad)
    names = {reference.name for reference in references(part) if reference.scope != "my"}
    if value is True or _may_become_true(part, value, offered):
        return ""
    if value is False:
        return f"has requirements that are false here: {part[:_SHOWN_LENGTH]}"
    published = sorted(filter(is_published_name, names))
    return _unpublished(offered, published, part) if published else ""


def _unpublished(offered: OfferAd, names: list[str], part: str) -> str:
    missing = [name for name in names if name not in offered.declared]
    asked = part[:_SHOWN_LENGTH]
    if missing:
        return f"no check of this queue publishes {_spelled(missing[0], part)}: {asked}"
    missing = [name for name in names if name not in offered.names]
    if missing:
        named = _spelled(missing[0], part)
        return f"no pilot of this queue has published {named} of late: {asked}"
    return f"what pilots of this queue have published of late cannot fulfil {asked}"


def _spelled(name: str, text: str) -> str:
    """Name as it is written in a text."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return found.group() if found else name


def _may_become_true(requirements: str, value: Any, offered: OfferAd) -> bool:
    """Whether an expression that is not true may be so once the pilot's node is known."""
    if _MAKES_NAMES.search(requirements):
        return True
    is_open = any(
        offered.is_of_node(reference.name) or offered.is_open(reference.name)
        for reference in references(requirements)
    )
    # What is false without the node stays false, unless it asks whether something is undefined.
    return is_open and (value is not False or bool(_ASKS_UNDEFINED.search(requirements)))
