"""Types of problems that the API answers with: one registry, of which each entry has a page.

The address of a type is that page's, and never changes. The codes are those of the domain's errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from django.urls import reverse


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A type of problems: its status, what it means, and what helps."""

    code: str
    title: str
    status: int
    meaning: str
    remedy: str

    @property
    def address(self) -> str:
        """Address of its page, which is its type."""
        return type_address(self.code)


_TYPES = (
    ProblemType(
        "invalid-input", "The input has faults", 400,
        "Something that was sent is wrong. `findings` has each fault with its field, or its file "
        "and line. Nothing was stored or changed.",
        "Mend what the findings name, and send it again. It is the same at every try.",
    ),
    ProblemType(
        "refused", "The request was refused", 400,
        "It cannot be carried out as it was sent; `detail` says why. Nothing was changed.",
        "Read the detail. It is the same at every try.",
    ),
    ProblemType(
        "upload-hash", "What was uploaded is another content", 400,
        "Every byte came, and they have another SHA-256 than was announced: `expected_sha256`, "
        "`found_sha256`. The upload is removed.",
        "Begin a new one: the file was changed meanwhile, or damaged on its way.",
    ),
    ProblemType(
        "reason-required", "A reason is needed", 400,
        "The change is recorded with a reason, and none was given.",
        "Send `reason`.",
    ),
    ProblemType(
        "unreadable", "The request cannot be read", 400,
        "Its body, its form or its address is no valid request.",
        "Look at its Content-Type, at the JSON or the parts of the form, and at its parameters.",
    ),
    ProblemType(
        "not-authenticated", "Nobody is logged in", 401,
        "No token was sent, or one that cannot be read, and there is no session.",
        "Send `Authorization: Bearer plt_...`. Your page has tokens.",
    ),
    ProblemType(
        "token-unknown", "The token is unknown", 401,
        "There is no such token. It may be cut off, or of another portal.",
        "Copy the whole token, or make a new one.",
    ),
    ProblemType(
        "token-revoked", "The token was revoked", 401,
        "You, or an administrator, ended it.",
        "Make a new one.",
    ),
    ProblemType(
        "token-expired", "The token has expired", 401,
        "Its time is over. That of a payload ends with its attempt.",
        "Make a new one.",
    ),
    ProblemType(
        "account-off", "The account is switched off", 401,
        "The token is good, but its account is not.",
        "Ask an administrator.",
    ),
    ProblemType(
        "token-unreadable", "The signed token is not good", 401,
        "It is malformed or too long, signed by a way or a key that is not taken, or lacks what it "
        "has to say; `detail` says which.",
        "Get a new one of its issuer. It is the same at every try.",
    ),
    ProblemType(
        "token-issuer", "The token's issuer is not trusted here", 401,
        "It is signed by an issuer that this portal was not told of, and may be good elsewhere.",
        "Take a token of an issuer that the portal names, or ask an administrator.",
    ),
    ProblemType(
        "token-audience", "The token is for another service", 401,
        "Its `aud` names others than this portal.",
        "Ask its issuer for a token with the audience that `detail` names.",
    ),
    ProblemType(
        "token-too-early", "The token is not good yet", 401,
        "It says that it is good from a later time. `detail` has that and the portal's: one of two "
        "clocks is wrong, or the token was made for later.",
        "Set the clocks of your host, of the issuer and of the portal by a time server.",
    ),
    ProblemType(
        "token-subject", "No account belongs to the token", 401,
        "The token is good, and nobody here is known as the one whom it names.",
        "Log in once by this provider on the portal's page, or ask an administrator.",
    ),
    ProblemType(
        "login-refused", "You are not let in", 403,
        "The identity provider knows you. It, you, or the portal's rules said no.",
        "`detail` says whose rule it was. Ask those who give the groups.",
    ),
    ProblemType(
        "login-failed", "The login did not come to its end", 400,
        "It was not begun in this browser, is too old, or the provider ended it.",
        "Begin once more on the login page.",
    ),
    ProblemType(
        "not-permitted", "You may not do this", 403,
        "You are known, and your role, your groups or your token do not allow it.",
        "`detail` says what is needed.",
    ),
    ProblemType(
        "scope-missing", "The token is not for this", 403,
        "You may do it, and this token may not: it was made for less. `scopes` are those it lacks.",
        "Take, or make, a token with these scopes.",
    ),
    ProblemType(
        "beyond-frontend", "The token is limited to a frontend", 403,
        "It is good for what is of this frontend alone: what all frontends share is read, and not "
        "changed; what is of no frontend, such as accounts, is out of its reach.",
        "Take a token that is not limited.",
    ),
    ProblemType(
        "not-found", "There is no such object, or you may not see it", 404,
        "Both are answered alike, so that nobody learns of what is not theirs.",
        "Look at the number or name, and at who you are (`GET /api/v1/me/`).",
    ),
    ProblemType(
        "outputs-removed", "The outputs were removed", 404,
        "They were there, and their time is over.",
        "Run the jobs again, or prolong the outputs in time.",
    ),
    ProblemType(
        "method-not-allowed", "The address does not take this method", 405,
        "`Allow` has those that it takes.",
        "Take one of them.",
    ),
    ProblemType(
        "not-acceptable", "There is no such form of the answer", 406,
        "`Accept` asks for what the address does not have.",
        "Ask for JSON, or for anything.",
    ),
    ProblemType(
        "conflict", "The state of the object forbids it", 409,
        "It is in a state in which this cannot be done; or somebody was faster; or the same "
        "`Idempotency-Key` came with another content.",
        "Read the object as it is now, and decide anew.",
    ),
    ProblemType(
        "quota", "A quota leaves no room", 409,
        "A quota of yours, or of your group, is used up: `quota`, `whose`, `limit`, `used` and "
        "`asked` tell which.",
        "Wait until something has ended, or ask an administrator.",
    ),
    ProblemType(
        "upload-offset", "The piece does not begin where the bytes that are here end", 409,
        "`expected_offset` tells how many bytes are here, `provided_offset` what was sent. "
        "Nothing of this piece was taken.",
        "Go on from `expected_offset`.",
    ),
    ProblemType(
        "open-test", "A test pilot is under way", 409,
        "The queue has one already; `pilot` names it.",
        "Wait for it.",
    ),
    ProblemType(
        "too-large", "The request is too large", 413,
        "Its body is larger than allowed, or has too many parts.",
        "Send less at once.",
    ),
    ProblemType(
        "unsupported-media-type", "The address does not take this kind of body", 415,
        "Most take `application/json`; those that take files, `multipart/form-data`.",
        "Set `Content-Type`.",
    ),
    ProblemType(
        "too-many", "Too much at once", 429,
        "You ask for more, or more often, than one may.",
        "Wait as long as `Retry-After` says.",
    ),
    ProblemType(
        "rate-exceeded", "More requests than the rate allows", 429,
        "A token, in all and for each of its scopes, and a user with all of theirs have so many "
        "requests in a time: `violated-policies` tells which rate is used up, `RateLimit-Policy` "
        "how large it is.",
        "Wait as long as `Retry-After` says. `RateLimit` tells in each answer what is left.",
    ),
    ProblemType(
        "busy", "All places are taken", 429,
        "What takes seconds has a few places only; the request was not begun.",
        "Send it again after `Retry-After` seconds.",
    ),
    ProblemType(
        "server-fault", "The portal is at fault", 500,
        "It is not your request. The fault is in the log, under `request_id`.",
        "Tell an administrator the request's id. What had an `Idempotency-Key` may be repeated.",
    ),
    ProblemType(
        "issuer-away", "The identity provider is away", 503,
        "The portal cannot reach it, or it does not answer as one does, and its keys are not kept.",
        "Try again in a moment.",
    ),
    ProblemType(
        "overloaded", "The portal has too much to do", 503,
        "It has more requests than it can answer at present; the request was not begun.",
        "Send the same again after `Retry-After` seconds, which differ from answer to answer, so "
        "that not all come back at once.",
    ),
    ProblemType(
        "unavailable", "The portal cannot answer now", 503,
        "Something that it needs is away for a time.",
        "Send it again later.",
    ),
)  # fmt: skip
PROBLEM_TYPES: Mapping[str, ProblemType] = {each.code: each for each in _TYPES}
#: Codes of what has no other one than its status.
_OF_STATUS: Mapping[int, str] = {
    400: "unreadable",
    401: "not-authenticated",
    403: "not-permitted",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    429: "too-many",
    500: "server-fault",
    503: "unavailable",
}


def type_address(code: str) -> str:
    """Type of a problem: the address of its page, in this portal."""
    return reverse("web:problem", args=[code])


def code_of_status(status: HTTPStatus) -> str:
    """Code of a problem of which nothing but the status is known."""
    return _OF_STATUS.get(status.value, "refused")
