"""Catalogue: logical names of files, and the storages at which each has a replica."""
