"""Date and time formats of the administration."""
