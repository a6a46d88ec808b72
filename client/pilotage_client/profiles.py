"""Profiles: which portal one speaks to, and with which token.

The first of these that says it counts: parameters (flags of the command line), the environment,
the profile in the file.

    default = "work"

    [profiles.work]
    url = "https://pilotage.example.org"
    token = "plt_..."

A profile of a login by a provider also has what its token is renewed by.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .errors import NoProfile, UsageError, why_of

URL_VARIABLE = "PILOTAGE_URL"
TOKEN_VARIABLE = "PILOTAGE_TOKEN"
TOKEN_FILE_VARIABLE = "PILOTAGE_TOKEN_FILE"
PROFILE_VARIABLE = "PILOTAGE_PROFILE"
FILE_VARIABLE = "PILOTAGE_CLIENT_CONFIG"
CA_VARIABLE = "PILOTAGE_CA_FILE"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEYS = ("url", "token", "ca_file")
#: A token that ends sooner is renewed before it is used.
_MARGIN_S = 300.0
_LOGIN_KEYS = ("provider", "issuer", "client_id", "refresh_token", "expires_at")


@dataclass(frozen=True)
class Login:
    """Means to renew a token: the provider, and the token by which it knows the client.

    `expires_at` is the end of the portal's token, in seconds since 1970.
    """

    provider: str
    issuer: str
    client_id: str
    refresh_token: str = field(repr=False)
    expires_at: float

    @property
    def is_due(self) -> bool:
        """Whether the token is to be renewed before it is used."""
        return self.expires_at - time.time() < _MARGIN_S


@dataclass(frozen=True)
class Profile:
    """A portal and who speaks to it. `source` tells where the token comes from.

    `login` is there for a token of the file that came from a login by a provider.
    """

    url: str
    token: str = field(repr=False)
    name: str = ""
    ca_file: str = ""
    source: str = ""
    login: Login | None = None


def config_file() -> Path:
    """File with the profiles."""
    if given := os.environ.get(FILE_VARIABLE):
        return Path(given)
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder, "pilotage", "client.toml")


def find_profile(
    *, url: str = "", token: str = "", name: str = "", ca_file: str = "", needs_token: bool = True
) -> Profile:
    """The profile that counts. Raises NoProfile and UsageError."""
    environment = os.environ
    kept = _kept(name or environment.get(PROFILE_VARIABLE, ""))
    found_url = url or environment.get(URL_VARIABLE) or kept.url
    if not found_url:
        raise NoProfile(
            "No portal is known: `pilotage login URL` keeps one, --url or "
            f"{URL_VARIABLE} names one."
        )
    clean_url = checked_url(found_url)
    found, source = _token(token, kept, is_own=clean_url == kept.url)
    if needs_token and not found:
        raise NoProfile(f"There is no token for {clean_url}: `pilotage login {clean_url}`.")
    return Profile(
        clean_url,
        found,
        kept.name,
        ca_file or environment.get(CA_VARIABLE, "") or kept.ca_file,
        source,
        kept.login if found == kept.token and source == kept.source else None,
    )


def checked_url(url: str) -> str:
    """Address without what belongs to pages. Raises UsageError."""
    clean = url.strip().rstrip("/")
    for end in ("/api/v1", "/api"):
        clean = clean[: -len(end)] if clean.endswith(end) else clean
    if not re.match(r"https?://[^/\s]+", clean):
        raise UsageError(f"{url} is no address: write it as https://HOST or http://HOST:PORT.")
    return clean


def save_profile(profile: Profile) -> Path:
    """Keep a profile, and make it the one that counts by default; the file."""
    return _keep(profile, is_default=True)


def renew_profile(profile: Profile) -> None:
    """Keep the new token of a profile that is there."""
    _keep(profile, is_default=False)


@contextmanager
def locked() -> Iterator[None]:
    """While this holds, no other process of this account renews a token."""
    path = config_file().with_name(f"{config_file().name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        # Closing gives it back, as does the end of the process.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def kept_profile(name: str) -> Profile:
    """A profile as it stands in the file now. Raises NoProfile."""
    return _kept(name)


def _keep(profile: Profile, *, is_default: bool) -> Path:
    if not _NAME.fullmatch(profile.name):
        raise UsageError(
            f"{profile.name} is no name of a profile: letters, digits, - and _ make one."
        )
    content = _content()
    values = {"url": profile.url, "token": profile.token, "ca_file": profile.ca_file}
    if profile.login is not None:
        values |= {key: str(getattr(profile.login, key)) for key in _LOGIN_KEYS}
    others = content.get("profiles") or {}
    content["profiles"] = {**others, profile.name: {k: v for k, v in values.items() if v}}
    if is_default:
        content["default"] = profile.name
    return _write(content)


def forget_token(name: str) -> Profile | None:
    """Take the token out of a profile; the profile as it was, None if it had none."""
    kept = _kept(name or os.environ.get(PROFILE_VARIABLE, ""))
    if not kept.token:
        return None
    content = _content()
    for key in ("token", *_LOGIN_KEYS):
        content["profiles"][kept.name].pop(key, None)
    _write(content)
    return kept


def _token(given: str, kept: Profile, *, is_own: bool) -> tuple[str, str]:
    """The token and where it comes from; one of the file goes to its own portal only."""
    if given:
        return given, "given"
    if text := os.environ.get(TOKEN_VARIABLE, "").strip():
        return text, TOKEN_VARIABLE
    if path := os.environ.get(TOKEN_FILE_VARIABLE):
        try:
            return Path(path).read_text(encoding="utf-8").strip(), path
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} with the token cannot be read: {why_of(error)}.") from None
    return (kept.token, kept.source) if is_own else ("", "")


def _kept(name: str) -> Profile:
    content = _content()
    profiles = content.get("profiles") or {}
    wanted = name or content.get("default") or next(iter(profiles), "default")
    if name and name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise NoProfile(f"There is no profile {name} in {config_file()}; there are: {known}.")
    values = profiles.get(wanted) or {}
    if not isinstance(values, dict) or any(
        not isinstance(values.get(key, ""), str) for key in (*_KEYS, *_LOGIN_KEYS)
    ):
        raise UsageError(f"{config_file()}: profile {wanted} is no table of texts.")
    found = Profile(
        "",
        values.get("token", ""),
        wanted,
        values.get("ca_file", ""),
        str(config_file()),
        _login(values),
    )
    return replace(found, url=checked_url(values["url"])) if values.get("url") else found


def _login(values: Mapping[str, str]) -> Login | None:
    """The login of a profile; None for a token that is not renewed."""
    if not all(values.get(key) for key in _LOGIN_KEYS):
        return None
    try:
        expires_at = float(values["expires_at"])
    except ValueError:
        expires_at = 0.0
    provider, issuer, client_id, refresh_token = (values[key] for key in _LOGIN_KEYS[:-1])
    return Login(provider, issuer, client_id, refresh_token, expires_at)


def _content() -> dict[str, Any]:
    path = config_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {why_of(error)}.") from None
    if path.stat().st_mode & 0o077 and "token" in text:
        raise UsageError(
            f"Others may read {path}, which has a token: `chmod 600 {path}`, and make a new "
            "token if they should not have it."
        )
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}.") from None


def _write(content: Mapping[str, Any]) -> Path:
    """Write the file, whole or not at all, for its owner only."""
    path = config_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(_lines(content)))
    fresh.replace(path)
    return path


def _lines(content: Mapping[str, Any]) -> list[str]:
    lines = [f"default = {_text(content['default'])}"] if content.get("default") else []
    for name, values in (content.get("profiles") or {}).items():
        lines += ["", f"[profiles.{name}]"]
        lines += [f"{key} = {_text(value)}" for key, value in values.items()]
    return [*lines, ""]


def _text(value: str) -> str:
    # A JSON string is one of TOML, too.
    return json.dumps(value, ensure_ascii=False)
