"""Commands about oneself: login, logout, token; and completion for shells."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from time import sleep
from urllib.parse import urlsplit

from ..client import Client
from ..errors import NoProfile, PilotageError, UsageError, why_of
from ..profiles import Profile, checked_url, config_file, find_profile, forget_token, save_profile
from .printing import say, say_json, tell

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SHOWN = 12


def login(options: Namespace) -> int:
    """Check a token at the portal, and keep it."""
    profile = _asked(options)
    profile = replace(profile, ca_file=options.ca_file or profile.ca_file)
    if options.device or options.provider:
        profile, user = _by_device(options, profile)
    else:
        profile, user = _by_token(options, profile)
    path = save_profile(profile)
    host = urlsplit(profile.url).hostname or ""
    if profile.url.startswith("http:") and host not in _LOOPBACK:
        tell(f"{profile.url} is not encrypted: whoever is in between can read the token.")
    if options.json:
        say_json({"user": user, "url": profile.url, "profile": profile.name, "file": str(path)})
    else:
        say(f"{user or 'Logged in'} at {profile.url}, kept as profile {profile.name} in {path}")
    return 0


def _by_token(options: Namespace, profile: Profile) -> tuple[Profile, str | None]:
    token = _read_token(options, profile.url)
    given = Profile(profile.url, token, profile.name, profile.ca_file)
    with Client(given.url, token, ca_file=given.ca_file, transport=options.transport) as client:
        return given, client.username()


def _by_device(options: Namespace, profile: Profile) -> tuple[Profile, str | None]:
    from ..openid import Prompt, log_in

    def show(prompt: Prompt) -> None:
        if prompt.whole:
            tell(f"Open {prompt.whole}")
            tell(f"or {prompt.address} and enter {prompt.code}")
        else:
            tell(f"Open {prompt.address} and enter {prompt.code}")

    found, user = log_in(
        profile,
        provider=options.provider,
        show=show,
        pause=sleep,
        tell=tell,
        transport=options.transport,
    )
    if found.login is None:
        tell("The provider lets nothing be renewed: this login lasts for an hour.")
    return found, user


def logout(options: Namespace) -> int:
    """Take the token of a profile out of the file."""
    forgotten = forget_token(options.profile or "")
    if forgotten is None:
        say(f"No token is kept in {config_file()}.")
        return 0
    say(
        f"The token of profile {forgotten.name} is forgotten here. The portal takes it until it is "
        f"revoked on the page of your account: {forgotten.url}/account/"
    )
    return 0


def token(client: Client, options: Namespace) -> int:
    """Token in use: whose it is, where it comes from, and whether the portal takes it."""
    profile = client.profile
    user = client.username()
    facts = {
        "user": user,
        "url": profile.url,
        "profile": profile.name,
        "token": f"{profile.token[:_SHOWN]}...",
        "source": profile.source,
    }
    if options.json:
        say_json(facts)
    else:
        for name, value in facts.items():
            if value:
                say(f"{name:8} {value}")
    return 0


def completion(options: Namespace) -> int:
    """Print what a shell evaluates to complete commands."""
    import shtab

    from .parser import parser

    say(shtab.complete(parser(), options.shell))
    return 0


def _asked(options: Namespace) -> Profile:
    """Profile that is to be kept; its token is not known yet."""
    url = options.portal or options.url or ""
    try:
        known = find_profile(name=options.profile or "", url=url, needs_token=False)
    except NoProfile:
        if not url:
            raise
        return Profile(checked_url(url), "", options.profile or "default")
    if options.profile or not known.url or not url:
        return Profile(known.url, "", options.profile or known.name, known.ca_file)
    return Profile(known.url, "", _name_for(known), known.ca_file)


def _name_for(known: Profile) -> str:
    """Name of the profile that has this address already, else of a new one."""
    try:
        kept = find_profile(name=known.name, needs_token=False)
    except PilotageError:
        return known.name or "default"
    if kept.url == known.url:
        return kept.name
    parts = urlsplit(known.url)
    host = (parts.hostname or "").replace(".", "-").replace(":", "-")
    return f"{host}-{parts.port}" if parts.port else host


def _read_token(options: Namespace, url: str) -> str:
    if options.token_file:
        try:
            with open(options.token_file, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{options.token_file} cannot be read: {why_of(error)}.") from None
    elif sys.stdin.isatty():
        from getpass import getpass

        tell(f"A token is made on the page of your account: {url}/account/")
        text = getpass("Token: ")
    else:
        text = sys.stdin.readline()
    if not text.strip():
        raise UsageError("There is no token: type it, or send it by standard input.")
    return text.strip()
