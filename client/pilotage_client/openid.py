"""Login by an OpenID Connect provider from a terminal: the grant of devices (RFC 8628).

The provider is found by way of the portal, the person agrees in a browser anywhere, and the portal
gives an API token for the provider's ID token: for an hour, renewed by the refresh token.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from .errors import Busy, LoginEnded, NoAnswer, ServerFault, UsageError, decoded, good
from .profiles import Login, Profile, kept_profile, locked, renew_profile
from .sending import Sender, certificates
from .wire import Outcome, Patience, Pause, Request, patiently

_DEVICES = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT_S, _CONNECT_S = 20.0, 5.0
_LEAST_PAUSE_S, _SLOWER_S, _LONGEST_PAUSE_S, _LONGEST_S = 1.0, 5.0, 30.0, 1800.0
#: After somebody agreed in a browser: an ID token is taken for ten minutes.
_PATIENCE = Patience(14, (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0))
_AT_ONCE = Patience(0)
_NEAR = frozenset({"localhost", "127.0.0.1", "::1"})


class _Away(NoAnswer):
    """A provider gives no answer now, and may give one later."""


@dataclass(frozen=True)
class Prompt:
    """Steps of a person in a browser: open `address` and type `code`; `whole` has both in one."""

    address: str
    code: str
    whole: str


@dataclass(frozen=True)
class _Tokens:
    """Tokens that a provider gave."""

    id_token: str = field(repr=False)
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)


def log_in(
    profile: Profile,
    *,
    provider: str,
    show: Callable[[Prompt], None],
    pause: Callable[[float], None],
    tell: Callable[[str], None],
    transport: Any = None,
) -> tuple[Profile, str]:
    """The profile with a token of the portal, after a person agreed; and whose it is.

    What is put off or gets no answer is asked again, so that nobody has to agree once more. Raises
    PilotageError.
    """

    def wait(step: Pause) -> None:
        tell(f"{step.reason}: asked again.")
        pause(step.seconds)

    def ask(request: Request) -> Any:
        return _asked(profile, request, transport, _PATIENCE, wait)

    listed = _asked(profile, Request("GET", "login/"), transport, Patience(), wait)
    found = _chosen(listed["providers"], provider)
    login = Login(found["id"], found["issuer"], found["client_id"], "", 0.0)
    with _Provider(login, profile) as asked:
        tokens = asked.tokens_of_device(found["scopes"], show, pause)
    return _exchanged(profile, login, tokens, ask, renews="")


def renewed(profile: Profile, transport: Any = None) -> Profile:
    """The profile with a token that is good for a while, kept in the file; one process does it.

    Where the provider is away, or the portal has no time, a token that is still good goes on being
    used. Raises PilotageError.
    """
    with locked():
        kept = kept_profile(profile.name)
        if kept.login is None or kept.url != profile.url:
            return profile
        current = replace(kept, ca_file=profile.ca_file or kept.ca_file)
        if not kept.login.is_due:
            return current
        try:
            return _renewed(current, kept.login, transport)
        except (NoAnswer, Busy, ServerFault):
            if kept.login.expires_at <= time.time():
                raise
            return current


def _renewed(profile: Profile, login: Login, transport: Any) -> Profile:
    with _Provider(login, profile) as asked:
        tokens = asked.tokens_of_refresh(login.refresh_token)
    # It counts for one time only at many providers: kept before anything else can fail.
    fresh = replace(login, refresh_token=tokens.refresh_token or login.refresh_token)
    renew_profile(replace(profile, login=fresh))
    prefix = profile.token.split("_")[1] if profile.token.count("_") > 1 else ""
    # Nobody waits: the next request renews it as well, and until then the former one is used.
    found, _ = _exchanged(
        profile, fresh, tokens, lambda request: _asked(profile, request, transport), renews=prefix
    )
    renew_profile(found)
    return found


def _exchanged(
    profile: Profile,
    login: Login,
    tokens: _Tokens,
    ask: Callable[[Request], Any],
    *,
    renews: str,
) -> tuple[Profile, str]:
    """The profile with the portal's token for those of the provider; and whose it is."""
    began = time.time()
    body = {
        "provider": login.provider, "id_token": tokens.id_token, "renews": renews,
        "access_token": tokens.access_token, "name": f"pilotage on {socket.gethostname()}"[:100],
    }  # fmt: skip
    # By the same ID token the portal makes no second login.
    given = ask(Request("POST", "login/", json=body, is_idempotent=True))
    # By this host's clock, whatever the portal's says.
    lifetime_s = float(given["lifetime_s"])
    fresh = replace(
        login,
        refresh_token=tokens.refresh_token or login.refresh_token,
        expires_at=round(began + lifetime_s),
    )
    found = replace(profile, token=given["token"], login=fresh if fresh.refresh_token else None)
    return found, str(given["username"])


def _asked(
    profile: Profile,
    request: Request,
    transport: Any,
    patience: Patience = _AT_ONCE,
    wait: Callable[[Pause], None] | None = None,
) -> Any:
    """Answer of the portal to a request without a token."""
    sender = Sender(replace(profile, token=""), transport)
    flow = patiently(request, patience)
    outcome: Outcome | None = None
    try:
        while True:
            step = flow.send(outcome)
            outcome = sender.send(step) if isinstance(step, Request) else None
            if isinstance(step, Pause) and wait is not None:
                wait(step)
    except StopIteration as end:
        return decoded(good(end.value))
    finally:
        sender.close()


def _chosen(providers: list[Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    names = ", ".join(str(each["id"]) for each in providers)
    if not providers:
        raise UsageError(
            "The portal names no provider for this: log in by a token of your account."
        )
    if not wanted and len(providers) > 1:
        raise UsageError(f"The portal has several providers, choose one by --provider: {names}.")
    for each in providers:
        if wanted in ("", each["id"]):
            return each
    raise UsageError(f"The portal has no provider {wanted}; it has {names}.")


class _Provider:
    """Calls of a provider."""

    def __init__(self, login: Login, profile: Profile) -> None:
        self._login = login
        self._told: Mapping[str, Any] | None = None
        self._client = httpx.Client(
            verify=certificates(profile.ca_file),
            timeout=httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
            headers={"Accept": "application/json"},
        )

    def __enter__(self) -> _Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def tokens_of_device(
        self, scopes: list[str], show: Callable[[Prompt], None], pause: Callable[[float], None]
    ) -> _Tokens:
        """Tokens after a person agreed in a browser. Raises LoginEnded or NoAnswer."""
        asked = {"client_id": self._login.client_id, "scope": " ".join(scopes)}
        given = self._post("device_authorization_endpoint", asked)
        if "device_code" not in given:
            raise LoginEnded(f"{self._login.issuer} refuses: {_why(given)}.")
        address = str(given.get("verification_uri") or given.get("verification_url") or "")
        code = str(given.get("user_code") or "")
        show(Prompt(address, code, str(given.get("verification_uri_complete") or "")))
        return self._polled(given, pause)

    def _polled(self, given: Mapping[str, Any], pause: Callable[[float], None]) -> _Tokens:
        pause_s = max(_LEAST_PAUSE_S, _number(given.get("interval"), 5.0))
        left_s = min(_number(given.get("expires_in"), 600.0), _LONGEST_S)
        asked = {
            "grant_type": _DEVICES, "client_id": self._login.client_id,
            "device_code": str(given["device_code"]),
        }  # fmt: skip
        while left_s > 0:
            pause(pause_s)
            left_s -= pause_s
            try:
                answer = self._post("token_endpoint", asked)
            except _Away:
                # The code stays good. Who is away is asked less and less often (section 3.5).
                if left_s <= 0:
                    raise
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            error = answer.get("error")
            if error == "slow_down":
                pause_s += _SLOWER_S
            elif error != "authorization_pending":
                return self._tokens(answer)
        raise LoginEnded("Nobody agreed in time: begin once more.")

    def tokens_of_refresh(self, refresh_token: str) -> _Tokens:
        """New tokens for those that end. Raises LoginEnded or NoAnswer."""
        asked = {
            "grant_type": "refresh_token", "client_id": self._login.client_id,
            "refresh_token": refresh_token,
        }  # fmt: skip
        return self._tokens(self._post("token_endpoint", asked))

    def _tokens(self, answer: Mapping[str, Any]) -> _Tokens:
        if "access_token" not in answer:
            raise LoginEnded(
                f"{self._login.issuer} gives no token ({_why(answer)}): `pilotage login --device` "
                "begins anew."
            )
        if not isinstance(answer.get("id_token"), str):
            raise LoginEnded(
                f"{self._login.issuer} gives no ID token: `pilotage login --device` begins anew."
            )
        texts = [answer.get(name) or "" for name in ("id_token", "access_token", "refresh_token")]
        return _Tokens(*map(str, texts))

    def _post(self, endpoint: str, values: Mapping[str, str]) -> Mapping[str, Any]:
        """Answer of an endpoint, good or an error of OAuth. Raises NoAnswer."""
        address = self._address(endpoint)
        return self._object(lambda: self._client.post(address, data=dict(values)), address)

    def _address(self, endpoint: str) -> str:
        where = self._login.issuer.rstrip("/") + "/.well-known/openid-configuration"
        if self._told is None:
            self._told = self._object(lambda: self._client.get(where), where)
        told = self._told
        address = told.get(endpoint)
        if told.get("issuer") != self._login.issuer or not isinstance(address, str):
            raise LoginEnded(f"{self._login.issuer} has no {endpoint}: it does not do this.")
        parts = urlsplit(address)
        if parts.scheme != "https" and parts.hostname not in _NEAR:
            raise LoginEnded(f"{address} is not encrypted: no token goes there.")
        return address

    def _object(self, ask: Callable[[], httpx.Response], address: str) -> Mapping[str, Any]:
        try:
            answer = ask()
        except httpx.TransportError as error:
            raise _Away(f"{address} does not answer: {error or type(error).__name__}.") from None
        if answer.status_code >= 500 or answer.status_code == 429:
            raise _Away(f"{address} asks to wait (status {answer.status_code}).")
        try:
            value = answer.json()
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise NoAnswer(f"{address} answers as no provider does (status {answer.status_code}).")
        return value


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, (int, float)) and value > 0 else default


def _why(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error_description") or answer.get("error") or "without a reason")[:200]
