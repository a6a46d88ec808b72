"""The files that DAGMan keeps of a run: rescues, written and read, and exports made on demand."""
