"""Negotiation: DAGs matched to sites, in order and within limits, and explained."""
