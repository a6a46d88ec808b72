"""Placement of data: requests that are tried until they succeed or their attempts are used up."""
