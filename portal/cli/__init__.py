"""The command line: the portal with all its servers as one command, and small commands."""
