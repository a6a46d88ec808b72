"""Commands of DAG files, each read from one line into the state of the parser."""
