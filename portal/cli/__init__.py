"""Command line: the portal with all its servers as one command, and client commands."""
