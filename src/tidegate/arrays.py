"""Array types, declared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Positions = NDArray[np.intp]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Complexes = NDArray[np.complex128]
Array = NDArray[Any]  # of any kind
