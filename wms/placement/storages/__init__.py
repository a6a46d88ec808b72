"""Storages: what lies where, how much may be allocated there, and how much moves at once."""
