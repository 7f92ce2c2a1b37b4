#!/usr/bin/env python3
"""The embedded Kubernetes: `python3 cluster/cluster.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from laptime_cluster.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
