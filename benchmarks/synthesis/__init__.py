"""Synthetic tables, ours and the peers', measured by the same code on the same rows."""
