"""The API, one file per part. A route must be in the table of `access/permissions.py`, or it cannot be created."""
