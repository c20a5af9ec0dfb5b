"""The clients' own tests are no part of this run: ``test_clients.py`` runs them, each in its client's environment."""

from __future__ import annotations

collect_ignore_glob = ["*/*"]
