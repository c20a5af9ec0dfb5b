"""``python -m tests.records`` writes all files anew that tests are held to (CONSTRAIN_DATA must be set).

They are ratchets: a test fails where something fares worse than its file says, and where it fares better, until the
file says so.
"""

from __future__ import annotations

import tests.support.json_schema.official_suite
import tests.support.maskbench_record
import tests.support.oracles.schemas.cases


def main() -> None:
    for part in (
        tests.support.json_schema.official_suite,
        tests.support.maskbench_record,
        tests.support.oracles.schemas.cases,
    ):
        print(f"--- {part.__name__}")
        part.main()


if __name__ == "__main__":
    main()
