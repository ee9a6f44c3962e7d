"""Where the public tables are from. None is in the repository.

Files are in the folder that TIDEGATE_DATA names, or in ~/.cache/tidegate-benchmarks, and are checked by their SHA-256.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

CACHE = Path.home() / ".cache" / "tidegate-benchmarks"


class Source(NamedTuple):
    """A file: its name in the folder, its origin, and its SHA-256."""

    file: str
    origin: str
    sha256: str


class DataMissing(Exception):
    """A file is missing or has another content; the message says where it is from."""


SOURCES = {
    "adult": Source(
        "adult.csv",
        "UCI Adult (CC BY 4.0), train and test together, with a header",
        "ce5feb731adaef81b15c3dc42dbe982fec8f47700711d60760bc752b4079bf9e",
    ),
    "diamonds": Source(
        "diamonds.csv",
        "github.com/mwaskom/seaborn-data at 71e2436a092d, diamonds.csv (the table of ggplot2)",
        "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4",
    ),
    "spending": Source(
        "randhie_raw.parquet",
        "github.com/vincentarelbundock/Rdatasets at 1dcc2bf5f955, parquet/sampleSelection/RandHIE.parquet",
        "b46c831e80d5381b385873a0ae289660de3fb4be5b9d33ceaf35d3b65e276335",
    ),
    "randhie": Source(
        "randhie.csv",
        "statsmodels 0.15.0, datasets/randhie/randhie.csv",
        "9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c",
    ),
    "fair": Source(
        "fair.csv",
        "statsmodels 0.15.0, datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
    ),
    "bank": Source(
        "bank-full.csv",
        "UCI Bank Marketing (Moro, Cortez, Rita 2014, CC BY 4.0), bank-full.csv, separated by commas, as in "
        "github.com/tule2236/SupervisedML_on_Bank_Marketing at 8c29cd719f9c",
        "eaab7cae9234dba29dd11916ea2c1e9a436ee7d8f001d53e8098b0b2cd0aea70",
    ),
}


def path_of(name: str) -> Path:
    """Return the path of a table's file, whose content is checked."""
    source = SOURCES[name]
    folders = [Path(os.environ["TIDEGATE_DATA"])] if os.environ.get("TIDEGATE_DATA") else []
    for folder in (*folders, CACHE):
        path = folder / source.file
        if path.exists():
            if hashlib.sha256(path.read_bytes()).hexdigest() != source.sha256:
                raise DataMissing(f"{path} has another content. Replace it by {source.origin}.")
            return path
    raise DataMissing(f"{source.file} is missing. Copy it to {CACHE}; it is from {source.origin}.")
