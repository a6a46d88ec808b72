"""Registry of elements, the batch system adapters: a queue's settings become its adapter."""

from __future__ import annotations

from collections.abc import Callable

from wms.elements.arc import arc_element
from wms.elements.factory import factory_element
from wms.elements.host import host_element
from wms.elements.htcondor import htcondor_element
from wms.elements.protocol import BadSettings, Element
from wms.elements.settings import Settings
from wms.elements.slurm import slurm_element


def element_for(kind: str, settings: Settings) -> Element:
    """Return the adapter of this kind; raise `BadSettings` if the settings do not fit it.

    Nothing is contacted, so this also serves to check settings before they are stored.
    """
    if kind not in ELEMENTS:
        raise BadSettings("kind", f"{kind!r} is unknown; there are {', '.join(sorted(ELEMENTS))}")
    return ELEMENTS[kind](settings)


#: A new adapter: copy `slurm.py`, pass the contract tests, add its line here.
ELEMENTS: dict[str, Callable[[Settings], Element]] = {
    "arc": arc_element,
    "factory": factory_element,
    "host": host_element,
    "htcondor": htcondor_element,
    "slurm": slurm_element,
}
