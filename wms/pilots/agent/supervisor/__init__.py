"""Supervisor program, which stands between the pilot and each payload.

Its modules import the standard library and each other only: their texts are given to an interpreter
on the command line (see `inline_program`).
"""
