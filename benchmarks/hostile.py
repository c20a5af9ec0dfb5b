"""Languages that are made to take long: what compiling one of each family takes, and how it ends.

    python benchmarks/hostile.py --output hostile.json
    python benchmarks/hostile.py --only enum --scale 0.1 --output /tmp/hostile.json      small ones of some families

Each runs in a process of its own; seconds are of the processor.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from about import origin

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.hostile_schemas import FAMILIES, cost


def main() -> None:
    """Measures, prints a table and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="families whose names contain this (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="part of each family's size (%(default)s)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("hostile.json"), help="where the numbers go")
    arguments = parser.parse_args()
    rows = []
    for name, family in FAMILIES.items():
        if arguments.only in name:
            size = max(1, round(family.size * arguments.scale))
            found = cost(name, size, arguments.timeout)
            rows.append({"family": name, "size": size, **asdict(found)})
            print(
                f"{found.seconds:7.2f} s {found.memory >> 20:5} MiB  {size:>10,} {name}: {found.outcome:.150}",
                flush=True,
            )
    arguments.output.write_text(json.dumps({**origin(), "families": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
