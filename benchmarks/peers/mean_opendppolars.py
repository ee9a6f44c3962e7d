"""OpenDP's Polars interface, the engine of DP Wizard: a mean of a file. FILE ROWS EPSILON"""

import sys

import opendp.prelude as dp
import polars as pl
from serve import serve

file, rows, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
dp.enable_features("contrib")


def mean():
    context = dp.Context.compositor(
        data=pl.scan_parquet(file),
        privacy_unit=dp.unit_of(contributions=2),  # two rows added or removed are one replaced row
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=rows, invariant="lengths")],
    )
    query = context.query().select(pl.col("x").cast(pl.Int32).fill_null(0).dp.mean((0, 100)))
    return query.release().collect().item()


charged = {"epsilon": epsilon, "neighbours": "replace one row"}
serve({"from the file": mean}, "opendp", "polars", charged=charged)
