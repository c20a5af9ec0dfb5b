"""A PostgreSQL server for the tests of stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sql

from tests.support.postgresql import running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a database."""
    with running() as address:
        yield address


@pytest.fixture
def postgresql(postgresql_server: str) -> str:
    """The address of an empty database."""
    engine = sql.create_engine(postgresql_server)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP TABLE IF EXISTS constrain_responses"))
    engine.dispose()
    return postgresql_server
