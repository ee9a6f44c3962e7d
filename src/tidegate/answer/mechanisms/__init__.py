"""One file per mechanism: exact integers in, noisy integers out."""
