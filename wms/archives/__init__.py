"""Archives of DAGs that have ended: one file each, with all that is known of the DAG, to look at.

A file is written from the tables (`writing`), checked as a whole when it comes back (`checking`),
and then kept as a content; nothing of it is ever inserted into the tables of living DAGs.
"""
