"""Programs of several modules as one text, for an interpreter's command line.

They run where the files of these modules are not to be seen, or must not be needed any more.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Sequence

_PROGRAM = """import sys, types
for name, text in {modules!r}:
    parts = name.split(".")
    for end in range(1, len(parts)):
        package = sys.modules.setdefault(".".join(parts[:end]), types.ModuleType("package"))
        package.__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    exec(compile(text, name, "exec"), module.__dict__)
    setattr(package, parts[-1], module)
module.main()
"""


@functools.cache
def program_of(*names: str) -> str:
    """The program of these modules of the pilot; the last one has `main`."""
    return program([module_of(name) for name in names])


def program(modules: Sequence[tuple[str, str]]) -> str:
    """The program of modules by their full names, each after those that it imports."""
    return _PROGRAM.format(modules=list(modules))


def module_of(name: str) -> tuple[str, str]:
    """A module of the pilot: its full name and its text."""
    path = name.replace(".", "/") + ".py"
    content = pkgutil.get_data(__package__, path)
    if content is None:
        raise OSError(f"the pilot's own file {path} cannot be read")
    return f"{__package__}.{name}", content.decode()
