"""Default normalisation rules of failure messages; operators change their copies in the portal."""

from __future__ import annotations

from typing import NamedTuple


class DefaultRule(NamedTuple):
    """A rule as it is stored at first."""

    name: str
    pattern: str
    placeholder: str
    note: str
    keeps: bool = False


_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# What stands in words: RE2's \w is ASCII's, and its classes of letters are a hundred times larger.
_WORD = r"\w\x{c0}-\x{1fff}\x{3040}-\x{10ffff}"
# Of eight characters at least, the first so many are of one kind, and the next is of the other.
_FIRST = range(1, 7)
_DIGEST = "|".join(
    [rf"\d{{{count}}}[a-f][\da-f]{{{7 - count},}}" for count in _FIRST]
    + [rf"[a-f]{{{count}}}\d[\da-f]{{{7 - count},}}" for count in _FIRST]
    + [r"\d{7,}[a-f][\da-f]*", r"[a-f]{7,}\d[\da-f]*"]
)

DEFAULT_RULES = (
    DefaultRule(
        "What comes next",
        r"; (?:all attempts are used up|it pauses for [0-9.e+]+ s|retry [0-9]+ of [0-9]+)$",
        "",
        "What is done about a failure says nothing about its cause.",
    ),
    DefaultRule(
        "Exit codes and signals",
        r"\b(?:exit code|exit status|signal|ended with(?: code)?) -?[0-9]+\b",
        "",
        "These numbers tell causes apart.",
        keeps=True,
    ),
    DefaultRule(
        "Time",
        r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?"
        r"(?: ?UTC\b|Z\b|[+-][0-9]{2}:?[0-9]{2}\b)?",
        "time",
        "2026-11-20 17:30:01 UTC, also a date alone.",
    ),
    DefaultRule(
        "Time of day",
        rf"\b(?:{_MONTHS} +[0-9]{{1,2}} )?[0-9]{{2}}:[0-9]{{2}}"
        r"(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: UTC)?\b",
        "time",
        "17:30:01, also as Nov 20 17:30:01.",
    ),
    DefaultRule(
        "Address",
        r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>,;)]+",
        "url",
        "Anything with ://.",
    ),
    DefaultRule(
        "Mail address",
        rf"(?:^|[^{_WORD}.+-])(?P<it>[{_WORD}.+-]+@[{_WORD}.-]+)",
        "user",
        "alice@example.org.",
    ),
    DefaultRule(
        "Path",
        rf"(?:^|[^{_WORD}/])(?P<it>(?:~|\.{{1,2}})?(?:/[{_WORD}.+=@%:~#-]+)+/?)",
        "path",
        "/home/alice/run.sh, ./run.sh, ~/data.",
    ),
    DefaultRule(
        "Path of a file",
        rf"(?:^|[^{_WORD}/.+-])"
        rf"(?P<it>(?:[{_WORD}+-]+/)+[{_WORD}+-]+(?:\.[{_WORD}+-]+)+)",
        "path",
        "plots/mass.png.",
    ),
    DefaultRule(
        "The owner",
        rf"(?:^|[^{_WORD}.-])(?P<it>{{owner}})(?:[^{_WORD}-]|$)",
        "user",
        "The name of the user whose job, DAG or pilot it is.",
    ),
    DefaultRule(
        "User name",
        r"(?i:\b(?:user name|username|user|owner|account|login))(?:=|: ?| ?['\"])"
        rf"(?P<it>[{_WORD}.-]+)",
        "user",
        "user=alice, owner: alice, account 'alice'.",
    ),
    DefaultRule(
        "The host",
        rf"(?:^|[^{_WORD}.-])(?P<it>{{host}})(?:[^{_WORD}-]|$)",
        "host",
        "The name of the worker node on which it happened.",
    ),
    DefaultRule(
        "The site",
        rf"(?:^|[^{_WORD}.-])(?P<it>{{site}})(?:[^{_WORD}-]|$)",
        "site",
        "The name of the site at which it happened.",
    ),
    DefaultRule(
        "Id",
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
        "id",
        "A UUID.",
    ),
    DefaultRule(
        "Network address",
        rf"(?:^|[^{_WORD}.])(?P<it>[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}(?::[0-9]+)?)(?:[^{_WORD}]|$)",
        "host",
        "192.0.2.1 or 192.0.2.1:443.",
    ),
    DefaultRule(
        "Host name",
        rf"(?:^|[^{_WORD}.-])"
        rf"(?P<it>[A-Za-z][{_WORD}-]*(?:\.[{_WORD}-]+){{2,}}(?::[0-9]+)?)(?:[^{_WORD}]|$)",
        "host",
        "node7.cluster.example.org: a name with two points or more.",
    ),
    DefaultRule(
        "File",
        rf"(?:^|[^{_WORD}.-])(?P<it>[A-Za-z_][{_WORD}+-]*(?:\.[{_WORD}+-]+)+)",
        "file",
        "out.root, job.17.txt.",
    ),
    DefaultRule("Number in base 16", r"\b0[xX][0-9a-fA-F]+\b", "hex", "0x7ffe12ab."),
    DefaultRule(
        "Digest",
        rf"(?i)\b(?:{_DIGEST})\b",
        "hex",
        "Eight or more of 0-9 and a-f, with both among them.",
    ),
    DefaultRule(
        "Number",
        r"(?:\B[-+])?[0-9]+(?:[.,][0-9]+)*(?:[eE][-+]?[0-9]+)?",
        "n",
        "Also in words: node12 and node7 are one.",
    ),
)
