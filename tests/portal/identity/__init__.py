"""Tests of identity: login by OpenID Connect, signed tokens, and their settings."""
