"""Transfer modules, one for each pair of URL schemes.

Another one is a module of this package with a function like `local_copy.copy`, and a line in
`MODULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wms.placement.modules import local_copy
from wms.placement.modules.protocol import NO_MODULE, ModuleFailed, TransferResult, TransferTask

#: The modules by the schemes of source and destination.
MODULES: Final[Mapping[tuple[str, str], Callable[[TransferTask], TransferResult]]] = {
    ("file", "file"): local_copy.copy,
}


def carry_out(pair: tuple[str, str], task: TransferTask) -> TransferResult:
    """Transfer the file by the module for this pair. Raises ModuleFailed."""
    module = MODULES.get(pair)
    if module is None:
        known = ", ".join("-".join(each) for each in sorted(MODULES))
        raise ModuleFailed(
            NO_MODULE, f"no module transfers from {pair[0]} to {pair[1]}; there is: {known}"
        )
    return module(task)
