"""The pilot agent: the program that runs on a worker node and pulls jobs.

It uses the standard library of Python 3.9 or newer and nothing else, imports nothing of the rest of
the project, and travels as one zip file (`wms.pilots.program.bundle`).
"""

from __future__ import annotations

__version__ = "0.1.0"
