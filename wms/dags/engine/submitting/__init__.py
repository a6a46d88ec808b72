"""Submission of ready nodes within the throttles, and what is read and made for it."""
