"""Files of this host: those that DAG and submit files name, and how they are sent."""
