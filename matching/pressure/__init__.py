"""Pilot pressure: pilots wanted at each queue."""
