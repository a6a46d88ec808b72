"""Running one payload: it is started through a supervisor process, measured, stopped, ended."""
