"""Hasher of passwords: Argon2id with the parameters that RFC 9106 has for less memory."""

from __future__ import annotations

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2(Argon2PasswordHasher):
    """Argon2id with 64 MiB, three passes and four lanes.

    Django's usual 100 MiB would be had by each thread of a web server that checks a password.
    """

    time_cost = 3
    memory_cost = 64 * 1024
    parallelism = 4
