"""Command `python -m examples.load` that fills the database with an example production of any size.

It refuses a portal that is not empty, unless told otherwise.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys


def main() -> int:
    """Fill the database of this environment; the number of what went wrong."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    parser = argparse.ArgumentParser(prog="python -m examples.load", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="how many; all else in proportion")
    parser.add_argument("--seed", type=int, default=1, help="another number: another production")
    parser.add_argument("--password", help="of all accounts; by default one is made and told")
    parser.add_argument(
        "--beside", action="store_true", help="load it into a portal that is not empty"
    )
    options = parser.parse_args()

    import django
    from django.utils import timezone

    django.setup()
    # Only now: they need the settings.
    from examples.load.accounts_and_sites import SHIFTER
    from examples.load.loading import NotEmpty, load, refuse_unless_empty
    from examples.load.scale import Scale

    scale = Scale.of_jobs(options.jobs, seed=options.seed)
    if faults := scale.faults():
        parser.error(f"--jobs {options.jobs}: {'; '.join(faults)}")
    try:
        if not options.beside:
            refuse_unless_empty()
    except NotEmpty as error:
        sys.stderr.write(f"load: {error}. With --beside the example is loaded nevertheless.\n")
        return 1
    password = options.password or secrets.token_urlsafe(9)
    load(scale, password=password, now=timezone.now(), say=_say)
    sys.stdout.write(f"Log in as {SHIFTER} with {password}\n")
    return 0


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
