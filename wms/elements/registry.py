"""Registry of elements, the batch system adapters: a queue's settings become its adapter."""

from __future__ import annotations

from collections.abc import Callable, Collection

from wms.elements.arc import arc_element
from wms.elements.factory import factory_element
from wms.elements.host import host_element
from wms.elements.htcondor import htcondor_element
from wms.elements.kubernetes import kubernetes_element
from wms.elements.logins import BadLogin, Login, LoginKind
from wms.elements.protocol import BadSettings, Element
from wms.elements.settings import Settings
from wms.elements.slurm import slurm_element


def element_for(kind: str, settings: Settings, login: Login | None = None) -> Element:
    """Return the adapter of this kind; raise `BadSettings` if the settings do not fit it.

    With a `login` it shows that to the batch system, in place of what the settings name; raises
    `BadLogin` where such a one is of no use. Nothing is contacted, so this also serves to check
    settings before they are stored.
    """
    if kind not in ELEMENTS:
        raise BadSettings("kind", f"{kind!r} is unknown; there are {', '.join(sorted(ELEMENTS))}")
    if login is None:
        return ELEMENTS[kind](settings)
    if why := login_refusal(kind, settings, login.kind):
        raise BadLogin(why)
    return _WITH_LOGINS[kind](settings, login)


def login_kinds(kind: str, settings: Settings) -> Collection[LoginKind]:
    """Kinds of logins that an element with these settings can use in place of its own."""
    if kind in _OVER_SSH:
        return (LoginKind.SSH_KEY,) if "ssh" in settings else ()
    return _LOGIN_KINDS.get(kind, ())


def login_refusal(kind: str, settings: Settings, login: LoginKind) -> str:
    """Why an element cannot use a login of this kind; empty if it can."""
    kinds = login_kinds(kind, settings)
    if login in kinds:
        return ""
    if not kinds:
        where = "without ssh" if kind in _OVER_SSH else ""
        return f"a queue of the element {kind} {where}".rstrip() + " is reached without credentials"
    return f"a queue of the element {kind} takes {' or '.join(kinds)}, not {login}"


#: A new adapter: copy `slurm.py`, pass the contract tests, add its line here.
ELEMENTS: dict[str, Callable[[Settings], Element]] = {
    "arc": arc_element,
    "factory": factory_element,
    "host": host_element,
    "htcondor": htcondor_element,
    "kubernetes": kubernetes_element,
    "slurm": slurm_element,
}

_OVER_SSH = frozenset({"host", "slurm"})
_LOGIN_KINDS = {
    "arc": (LoginKind.BEARER_TOKEN, LoginKind.CERTIFICATE),
    "htcondor": (LoginKind.HTCONDOR_TOKEN,),
    "kubernetes": (LoginKind.BEARER_TOKEN,),
}
#: The adapters that take a login, as those above.
_WITH_LOGINS: dict[str, Callable[[Settings, Login], Element]] = {
    "arc": arc_element,
    "host": host_element,
    "htcondor": htcondor_element,
    "kubernetes": kubernetes_element,
    "slurm": slurm_element,
}
