"""Benchmarks: each file answers one question and measures a floor in the same run.

    python -m benchmarks             every question at its smallest size, as a table
    python -m benchmarks --full      at full size (needs about 2 GB of disk, 4 GB of memory and a quarter of an hour)
    python -m benchmarks ledger      one of them

Every run prints one JSON line and adds it to benchmarks/results/*.jsonl, which git ignores. Compared runs take turns,
and a ratio is the median of the ratios of neighbors: a busy machine slows both sides. No test asserts seconds.
"""
