"""The clients' own tests are no part of this run: ``test_clients.py`` runs them, each in its client's environment."""

from __future__ import annotations

from pathlib import Path

collect_ignore = [folder.name for folder in Path(__file__).parent.iterdir() if folder.is_dir()]
