"""Self-test of keys: whether what is stored encrypted can be opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from portal.selftest.findings import Code, Finding, error, ok, warning


def keys(trouble: str, lost: Mapping[str, int]) -> Iterator[Finding]:
    """Findings on the keys of credentials, which `trouble` is told of, and on secrets by kind."""
    if trouble:
        yield warning(
            Code.KEYS_MISSING,
            trouble,
            "No credential can be stored, and none that is stored be used.",
            "Look at PILOTAGE_CREDENTIAL_KEYS, or make a key: `manage.py rotate_keys --new "
            "--only credential-keys`.",
        )
    if lost:
        told = ", ".join(f"{what} ({count})" for what, count in sorted(lost.items()))
        yield error(
            Code.KEYS_WRONG,
            f"No key opens: {told}.",
            "They are of no use until the key that encrypted them is back.",
            "Add that key behind the others: PILOTAGE_CREDENTIAL_KEYS, or of webhooks "
            "PILOTAGE_SECRET_KEY_FALLBACKS. If it is lost, set each anew.",
        )
    if not trouble and not lost:
        yield ok(Code.KEYS, "The keys open all that is stored encrypted.")
