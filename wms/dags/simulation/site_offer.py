"""Offer of the simulated site, read from JSON: environment, ad attributes, tags of its queue.

Also placeholders, with warnings, for values that the DAG's files refer to and the offer lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wms.core.errors import Finding, InvalidInput

_ENVIRONMENT = re.compile(r"\$ENV\(\s*(\w+)\s*\)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\$\$\(\s*(\w+)\s*\)")
#: What every DAG has in its environment, and what stands for two dollar signs.
_KNOWN = frozenset({"user", "path", "dollardollar"})
_KINDS: dict[str, type] = {
    "environment": dict,
    "attributes": dict,
    "tags": list,
    "setup": str,
    "submit_pool": str,
}


@dataclass(frozen=True, slots=True)
class SiteOffer:
    """Offer of a site: values of `$ENV(...)` and `$$(...)`, and what jobs may need of its queue."""

    environment: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    setup: str = ""
    submit_pool: str = ""


PLAIN_SITE_OFFER = SiteOffer()


def read_site_offer(given: Mapping[str, Any]) -> SiteOffer:
    """Site offer from an object of a JSON file. Raises InvalidInput with every fault."""
    faults = [
        Finding(
            "there is no such key" if name not in _KINDS else "is not what it takes",
            field=f"site.{name}",
        )
        for name, value in given.items()
        if name not in _KINDS or not isinstance(value, _KINDS[name])
    ]
    if faults:
        raise InvalidInput(faults)
    values = dict(given)
    values["environment"] = {name: str(text) for name, text in given.get("environment", {}).items()}
    values["tags"] = tuple(map(str, given.get("tags", ())))
    return SiteOffer(**values)


def with_placeholders(site: SiteOffer, texts: Iterable[str]) -> tuple[SiteOffer, list[Finding]]:
    """Site offer with a value for each `$ENV(...)` and `$$(...)` in these texts, and warnings.

    The placeholder of a name without a value is the name itself.
    """
    environment, attributes = dict(site.environment), dict(site.attributes)
    missing = []
    for text in texts:
        for pattern, known, form in (
            (_ENVIRONMENT, environment, "$ENV({})"),
            (_ATTRIBUTE, attributes, "$$({})"),
        ):
            for name in pattern.findall(text):
                if name.lower() not in _KNOWN | {each.lower() for each in known}:
                    known[name] = name
                    missing.append(form.format(name))
    warnings = []
    if missing:
        names = ", ".join(sorted(missing)[:20])
        warnings.append(Finding(f"sites give these, which stand for themselves here: {names}"))
    return replace(site, environment=environment, attributes=attributes), warnings
