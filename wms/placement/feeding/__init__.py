"""Feeder: a program of the site that is run when few placements wait, and submits new ones."""
