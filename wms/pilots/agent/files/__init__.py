"""Files of one job on the worker node: its directories, its attributes, the space they take."""
