"""Numeric values of submit commands: amounts with units, and expressions that are evaluated.

Also the expression of the job attribute that belongs to a command. HTCondor keeps an expression
with the job and evaluates it for every match. Here it is evaluated once, when the job is made,
because jobs with equal needs wait in one TaskQueue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import classad2

from matching.ads.ad_cost import check_cost
from matching.ads.classads import AdError, build_ad, evaluate, parse_expression
from matching.ads.expressions import references
from matching.descriptions.macro_functions import MOST_STEPS
from matching.descriptions.substitution import OwnAttributes
from wms.jobs.description.needs import parse_disk_mb, parse_memory_mb

#: The commands whose values are numbers, and the attributes that HTCondor's jobs have of them.
NUMBERS = {
    "request_cpus": "RequestCpus",
    "request_memory": "RequestMemory",
    "request_disk": "RequestDisk",
    "request_gpus": "RequestGPUs",
    "priority": "JobPrio",
    "max_retries": "JobMaxRetries",
    "allowed_execute_duration": "AllowedExecuteDuration",
    "success_exit_code": "JobSuccessExitCode",
}
#: Commands whose fractions are rounded up.
_ROUNDED_UP = frozenset({"request_cpus", "request_memory", "request_disk", "request_gpus"})
_WITH_UNITS = frozenset({"request_memory", "request_disk"})
_PLAIN = re.compile(r"[0-9]+")
_AMOUNT = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)\s*(?:[KMGT]B?)?", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = "NumberOfDescription"


def is_plain(name: str, text: str) -> bool:
    """Whether the value of a command needs no evaluation."""
    pattern = _AMOUNT if name in _WITH_UNITS else _PLAIN
    return not text.strip() or pattern.fullmatch(text.strip()) is not None


def number_text(
    name: str, text: str, own_attributes: Callable[[str], OwnAttributes | None]
) -> str | None:
    """Number that an expression evaluates to, as text; a text that is no expression is returned as
    it is.

    `own_attributes` gives the attributes of the job's own ad that an expression refers to, or None
    if some of them are not known yet; the result is None then. Raises ValueError for an expression
    that gives no number; a single word without a value is returned as it is.
    """
    if is_plain(name, text):
        return text
    try:
        expression = parse_expression(text)
    except AdError:
        # Whoever reads the command tells best what it should be.
        return text
    ad = own_attributes(text)
    if ad is None:
        return None
    try:
        check_cost({**ad.expressions, _VALUE: text}, most_steps=MOST_STEPS)
        value = evaluate(expression, build_ad(ad.expressions, ad.values))
    except AdError as error:
        raise ValueError(error.message.removeprefix(f"{_VALUE}: ")) from error
    if isinstance(value, classad2.Value) or not isinstance(value, int | float):
        if _WORD.fullmatch(text.strip()):
            return text
        raise ValueError(f"not a number: {text.strip()[:80]}{_unknown_names_text(text, ad)}")
    return str(math.ceil(value) if name in _ROUNDED_UP else math.trunc(value))


def _unknown_names_text(text: str, ad: OwnAttributes) -> str:
    """Clause naming the attributes of an expression without a value; empty if there are none."""
    known = {name.lower() for name in (*ad.expressions, *ad.values)}
    unknown = {each.name for each in references(text) if each.scope == "target"}
    unknown |= {each.name for each in references(text) if each.name not in known}
    if not unknown:
        return ""
    return f"; before the job runs, nothing is known of {', '.join(sorted(unknown))[:80]}"


def attribute_text(name: str, text: str) -> str:
    """Expression of the job attribute that belongs to a command. Raises ValueError."""
    if name not in _WITH_UNITS or not is_plain(name, text) or not text.strip():
        return text.strip() or "0"
    return str(parse_memory_mb(text) if name == "request_memory" else parse_disk_mb(text) * 1024)
