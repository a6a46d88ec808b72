"""Talking to the portal: requests, and the reports, output and log that go up to it."""
