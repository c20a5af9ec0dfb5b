"""What holds for all tests."""

from __future__ import annotations

import os


def pytest_report_header() -> list[str]:
    data = os.environ.get("CONSTRAIN_DATA", "not set: tests on real schemas and vocabularies are skipped")
    length = "full length" if os.environ.get("CONSTRAIN_LONG") else "samples; CONSTRAIN_LONG=1 for full length"
    return [f"data: {data}", f"tests: {length}"]
