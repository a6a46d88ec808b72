"""Ends of nodes and DAGs, decided and carried out."""
