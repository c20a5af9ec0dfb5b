"""A normal client beside hostile requests: how long its requests take, and the memory of the server.

    python benchmarks/attack.py --output benchmarks/results/attack.json
    python benchmarks/attack.py --requests 40 --alone 5 --output /tmp/attack.json      a trial of the program

Starts a server of its own; options after ``--`` are the server's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from about import origin

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.server.attack import NORMAL_REQUESTS, attack
from tests.support.server.process import program


def main() -> None:
    """Attacks, prints what became of it and writes a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, help="hostile requests (all 200)")
    parser.add_argument("--alone", type=int, default=NORMAL_REQUESTS, help="requests before the attack (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("attack.json"), help="where the numbers go")
    parser.add_argument("options", nargs="*", help="options of the server, after --")
    arguments = parser.parse_args()
    try:
        with program(*arguments.options) as served:
            report = attack(served.url, served.process.pid, requests=arguments.requests, alone=arguments.alone)
    except ValueError as error:  # of --requests and --alone
        parser.error(str(error))
    print(report)
    written = {**origin(), "server": arguments.options, **report.numbers()}
    arguments.output.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
