"""``python -m constrain``: the command line."""

from __future__ import annotations

from constrain.cli import main

main()
