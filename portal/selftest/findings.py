"""Findings of the self-test: code, level (ok, warning, error), and texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Level(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    OK = "ok"


class Code(StrEnum):
    """Code of a finding, for programs; people read the texts."""

    ADDRESS = "address"
    ADDRESS_IS_LOOPBACK = "address-is-loopback"
    ADDRESS_DOES_NOT_RESOLVE = "address-does-not-resolve"
    ADDRESS_NOT_ALLOWED = "address-not-allowed"
    ADDRESS_NOT_LISTENED_TO = "address-not-listened-to"
    NO_TLS = "no-tls"
    PROXY_NOT_TOLD = "proxy-not-told"
    ANY_HOST_ALLOWED = "any-host-allowed"
    DEBUG = "debug"
    WEAK_SECRET_KEY = "weak-secret-key"
    SETTINGS = "settings"
    KEYS = "keys"
    KEYS_MISSING = "keys-missing"
    KEYS_WRONG = "keys-wrong"
    PYTHON = "python"
    PYTHON_REPEATS = "python-possessive-repeats"
    PYTHON_UNMAINTAINED = "python-unmaintained"
    SCRIPTS_FENCE = "scripts-fence"
    SCRIPTS_NOT_RUN = "scripts-not-run"
    SCRIPTS_UNFENCED = "scripts-unfenced"
    PAYLOADS_FENCE = "payloads-fence"
    PAYLOADS_NOT_RUN = "payloads-not-run"
    PAYLOADS_UNFENCED = "payloads-unfenced"
    FENCE_UNUSED = "fence-unused"
    DATABASE = "database"
    DATABASE_TOO_OLD = "database-too-old"
    DATABASE_MAY_LOSE = "database-may-lose"
    CLOCK = "clock"
    CLOCK_DIFFERS = "clock-differs"
    BROKER = "broker"
    BROKER_TOO_OLD = "broker-too-old"
    BROKER_UNREACHABLE = "broker-unreachable"
    BROKER_POLICY = "broker-policy"
    BROKER_WRITES = "broker-writes"
    BROKER_ACCOUNT = "broker-account"
    CONTENTS = "contents"
    CONTENTS_NOT_KEPT = "contents-not-kept"
    CONTENTS_OF_OTHERS = "contents-of-others"
    CONTENTS_LEFT = "contents-left"
    FEEDER = "feeder"
    FEEDER_NOT_RUN = "feeder-not-run"
    DISK = "disk"
    DISK_SMALL = "disk-small"
    DISK_FULL = "disk-full"
    ADMINISTRATOR = "administrator"
    NO_ADMINISTRATOR = "no-administrator"
    CHECK_FAILED = "check-failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: what was found, why it matters, and what to do."""

    code: Code
    level: Level
    what: str
    why: str = ""
    todo: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding for programs."""
        return {name: str(value) for name, value in asdict(self).items()}

    def as_text(self) -> str:
        """The finding as lines for a terminal."""
        lines = [f"{self.level}: {self.what} [{self.code}]"]
        return "\n    ".join([*lines, *filter(None, [self.why, self.todo])])


def ok(code: Code, what: str) -> Finding:
    """Finding of level OK."""
    return Finding(code, Level.OK, what)


def error(code: Code, what: str, why: str, todo: str) -> Finding:
    """Finding of level ERROR: something cannot work, or is open to everybody."""
    return Finding(code, Level.ERROR, what, why, todo)


def warning(code: Code, what: str, why: str, todo: str) -> Finding:
    """Finding of level WARNING: it works, but not well, not for long, or not safely."""
    return Finding(code, Level.WARNING, what, why, todo)


def troubles(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that are not OK, errors first."""
    bad = [each for each in findings if each.level != Level.OK]
    return sorted(bad, key=lambda each: each.level != Level.ERROR)


def has_errors(findings: Iterable[Finding]) -> bool:
    """True when something cannot work."""
    return any(each.level == Level.ERROR for each in findings)
