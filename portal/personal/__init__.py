"""Saved filters and display preferences of users."""
