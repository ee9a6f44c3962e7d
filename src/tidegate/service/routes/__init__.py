"""The API, one file for each part. Every route stands in `access/table.py`, or cannot be made."""
