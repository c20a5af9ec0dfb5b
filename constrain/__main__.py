"""``python -m constrain``, and the program ``constrain``: the command line."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Runs the command line. Its modules are imported here, so that an interruption meanwhile is no traceback."""
    try:
        from constrain.cli.program import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
