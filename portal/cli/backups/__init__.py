"""Backups of an installation: taken while it runs, checked, restored into an empty one."""
