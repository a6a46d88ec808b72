"""Storage of contents of any size behind one protocol: a folder, or a bucket of an S3 store."""
