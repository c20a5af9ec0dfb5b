"""``python -m tests.recorded [TABLE ...]`` writes the answers of tables again; look at the changes before a commit."""

from __future__ import annotations

import sys

from tests.recorded.asking import answer, difference, rows, tables, write
from tests.recorded.test_recorded import steady


def main(names: list[str]) -> None:
    with steady():
        for name in names or tables():
            found = rows(name)
            for row in found:
                got = answer(row)
                if "got" not in row:
                    row["got"] = got
                elif changed := difference(got, row["got"]):
                    print(f"{name}: {row.get('call', row.get('to'))}: {changed}")
                    row["got"] = got
            write(name, found)


if __name__ == "__main__":
    main(sys.argv[1:])
