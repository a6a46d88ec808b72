"""Endpoints of archives of DAGs: written while they are sent, and those that are kept."""
