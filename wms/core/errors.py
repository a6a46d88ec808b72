"""Exceptions of the domain (not permitted, not found, conflict, quota, ...), and `Finding`.

A finding is one fault of an input, with its place: file, line and column, or field. Each exception
carries its facts as fields; its docstring says what it means. `portal` turns them into pages and
problem details, by the `status` of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


class PilotageError(Exception):
    """Something was refused; the message tells the reader why.

    `code` tells programs what happened; faces make an address of it that explains it (RFC 9457).
    `retry_after_s` tells when the same may be asked again.
    """

    status = 400
    code = "refused"
    retry_after_s: int | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n")[0])


class NotPermitted(PilotageError):
    """The actor may not do this."""

    status = 403
    code = "not-permitted"


class ScopeMissing(NotPermitted):
    """The token is not for this; `scopes` are those that it lacks."""

    code = "scope-missing"

    def __init__(self, message: str, *, scopes: Sequence[str]) -> None:
        super().__init__(message)
        self.scopes = tuple(scopes)


class BeyondFrontend(NotPermitted):
    """The token is limited to a frontend, and this concerns what is of none or of all."""

    code = "beyond-frontend"


class NotFound(PilotageError):
    """There is no such object, or the actor may not see it."""

    status = 404
    code = "not-found"


class Conflict(PilotageError):
    """The object is in a state in which this cannot be done."""

    status = 409
    code = "conflict"


class QuotaExceeded(Conflict):
    """A quota leaves no room for what was asked; it passes when there is room again.

    `quota` is the name of the limit, `whose` says who has it. `used` and `asked` are in its unit.
    """

    code = "quota"

    def __init__(
        self, message: str, *, quota: str, whose: str, limit: int, used: int, asked: int
    ) -> None:
        super().__init__(message)
        self.quota, self.whose = quota, whose
        self.limit, self.used, self.asked = limit, used, asked


class ReasonRequired(PilotageError):
    """This change needs a reason."""

    code = "reason-required"

    def __init__(self, event: str) -> None:
        super().__init__(f"Give a reason: it is recorded with the change ({event}).")
        self.event = event


class NotAuthenticated(PilotageError):
    """The credential is unknown, wrong, used or expired."""

    status = 401
    code = "not-authenticated"


class TokenUnknown(NotAuthenticated):
    """There is no such token; it may have been cut off when it was copied."""

    code = "token-unknown"


class TokenRevoked(NotAuthenticated):
    """The token was revoked."""

    code = "token-revoked"


class TokenExpired(NotAuthenticated):
    """The time of the token is over."""

    code = "token-expired"


class AccountOff(NotAuthenticated):
    """The account of the token is switched off."""

    code = "account-off"


class TokenUnreadable(NotAuthenticated):
    """A signed token is malformed, or signed otherwise than it may be."""

    code = "token-unreadable"


class IssuerForeign(NotAuthenticated):
    """The portal does not trust the issuer of a signed token."""

    code = "token-issuer"


class AudienceWrong(NotAuthenticated):
    """A signed token is for another service."""

    code = "token-audience"


class TokenTooEarly(NotAuthenticated):
    """A signed token is not valid yet: it was made for later, or a clock is wrong."""

    code = "token-too-early"


class SubjectUnknown(NotAuthenticated):
    """No account belongs to the subject of a signed token."""

    code = "token-subject"


class LoginRefused(NotPermitted):
    """The provider knows the person, and the portal does not let this person in."""

    code = "login-refused"


class LoginFailed(PilotageError):
    """A login by a provider did not come to its end; it can be begun again."""

    code = "login-failed"


class IssuerAway(PilotageError):
    """An identity provider does not answer, or not as one does, and what it said is not kept."""

    status = 503
    code = "issuer-away"


class TooMany(PilotageError):
    """The actor asks for more at once than one may."""

    status = 429
    code = "too-many"


class Busy(TooMany):
    """All slots for requests that take long are taken; this one was not begun."""

    code = "busy"
    retry_after_s = 5


class TooLarge(PilotageError):
    """The upload is larger than allowed."""

    status = 413
    code = "too-large"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of an input: what is wrong, and where.

    `command` is the command of a DAG file that is at fault, in capitals. `column` counts from 1 in
    the line. `member` is the name of what is at fault in the archive `file`, as it stands there;
    what is no text in it is written as `\\xff`.
    """

    message: str
    file: str = ""
    line: int | None = None
    field: str = ""
    command: str = ""
    column: int | None = None
    member: str = ""

    def stored(self) -> dict[str, Any]:
        """The finding as it is kept in the database; former releases know no `member`."""
        kept = asdict(self)
        if not self.member:
            del kept["member"]
        return kept

    def __str__(self) -> str:
        place = self.file or self.field
        if place and self.line is not None:
            place = f"{place}:{self.line}"
        if place and self.line is not None and self.column is not None:
            place = f"{place}:{self.column}"
        return f"{place}: {self.message}" if place else self.message


class InvalidInput(PilotageError):
    """The input has faults; nothing was stored or changed."""

    code = "invalid-input"

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(str(finding) for finding in findings))
        self.findings = tuple(findings)

    @classmethod
    def of(
        cls, message: str, *, field: str = "", file: str = "", line: int | None = None
    ) -> InvalidInput:
        """The error for a single fault."""
        return cls([Finding(message=message, field=field, file=file, line=line)])
