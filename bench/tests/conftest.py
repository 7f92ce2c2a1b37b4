"""Makes the modules of the benchmarks importable."""

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(BENCH),
    str(BENCH / "examples"),
    str(BENCH / "servers"),
    str(BENCH / "comparing"),
    str(BENCH / "scale"),
    str(BENCH.parent / "cluster"),
    str(BENCH.parent / "proof"),
]
