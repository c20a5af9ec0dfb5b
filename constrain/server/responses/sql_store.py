"""Responses in a database, which several servers share."""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from constrain.server.http.errors import unavailable
from constrain.server.responses.request import StoredResponse
from constrain.server.responses.store import MAX_AGE, ResponseStore, require_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy.engine import Connection

_log = logging.getLogger("constrain.server")

MAX_SHARED_RESPONSES = 100_000
"""Responses that a database keeps: 100,000; beyond it, the oldest are dropped."""

MAX_SHARED_BYTES = 8 << 30
"""Bytes, as JSON, that responses in a database may take together: 8 GiB; beyond it, the oldest are dropped."""

SHRINK_SECONDS = 60.0
"""Seconds between two looks of one server at the limits of a database: 60; meanwhile, they may be exceeded."""

_BUSY_SECONDS = 30
"""Seconds to wait for another server that writes to the same SQLite file: 30; then the request fails."""

_metadata = sql.MetaData()
_responses = sql.Table(
    "constrain_responses",
    _metadata,
    sql.Column("id", sql.String(200), primary_key=True),
    sql.Column("owner", sql.String(64), nullable=False),
    sql.Column("expires", sql.Float(53), nullable=False, index=True),
    sql.Column("size", sql.BigInteger, nullable=False),
    sql.Column("response", sql.Text, nullable=False),
    sql.Column("input_items", sql.Text, nullable=False),
    sql.Column("conversation", sql.Text, nullable=False),
    sql.Column("conversation_size", sql.BigInteger, nullable=False),
)


class SqlStore(ResponseStore):
    """Keeps responses in a table of a database. The servers that share it must have clocks that agree.

    Args:
        url: address of the database as SQLAlchemy reads it: ``sqlite:////var/lib/responses.db`` for one machine,
            ``postgresql+psycopg://user:password@host/name`` for several.
        max_responses: number of responses that are kept.
        max_bytes: bytes, as JSON, that responses may take together.
        max_age: seconds that a response is kept.
        shrink_seconds: seconds between two looks at the limits.
        clock: function that returns the seconds since 1970.

    Raises ``ValueError`` if there is no database at the address.
    """

    def __init__(
        self,
        url: str,
        *,
        max_responses: int = MAX_SHARED_RESPONSES,
        max_bytes: int = MAX_SHARED_BYTES,
        max_age: float = MAX_AGE,
        shrink_seconds: float = SHRINK_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._shrink_seconds = shrink_seconds
        self._clock = clock
        self._shrunk = -shrink_seconds
        self._engine = _connect(url)

    def try_write(self, owner: str, stored: StoredResponse) -> None:
        """Writes a response that the next look at the limits deletes, unless ``write`` replaces it before."""
        require_size(stored, self._max_bytes)
        self._write(owner, stored, 0.0)

    def write(self, owner: str, stored: StoredResponse) -> None:
        """Keeps a response."""
        self._write(owner, stored, self._max_age)

    def _write(self, owner: str, stored: StoredResponse, age: float) -> None:
        """Keeps a response for ``age`` seconds."""
        now = self._clock()
        row = {
            "id": stored.response["id"],
            "owner": owner,
            "expires": now + age,
            "size": stored.whole_size,
            "response": json.dumps(stored.response),
            "input_items": json.dumps(stored.input_items),
            "conversation": json.dumps(stored.conversation),
            "conversation_size": stored.size,
        }
        with self._begin() as connection:
            connection.execute(sql.delete(_responses).where(self._is(owner, stored.response["id"])))
            connection.execute(sql.insert(_responses), row)
            if now - self._shrunk >= self._shrink_seconds:
                self._shrink(connection, now)
                self._shrunk = now

    def read(self, owner: str, response_id: str) -> StoredResponse | None:
        """Returns a response."""
        columns = (
            _responses.c.response,
            _responses.c.input_items,
            _responses.c.conversation,
            _responses.c.conversation_size,
        )
        wanted = sql.select(*columns).where(self._is(owner, response_id), _responses.c.expires > self._clock())
        with self._begin() as connection:
            row = connection.execute(wanted).one_or_none()
        if row is None:
            return None
        return StoredResponse(
            json.loads(row.response),
            tuple(json.loads(row.input_items)),
            tuple(json.loads(row.conversation)),
            row.conversation_size,
        )

    def remove(self, owner: str, response_id: str) -> None:
        """Removes a response."""
        with self._begin() as connection:
            connection.execute(sql.delete(_responses).where(self._is(owner, response_id)))

    def close(self) -> None:
        """Ends the connections."""
        self._engine.dispose()

    @staticmethod
    def _is(owner: str, response_id: str) -> Any:
        return sql.and_(_responses.c.id == response_id, _responses.c.owner == owner)

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """Opens a transaction. Raises ``ApiError`` if the database fails."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            _log.exception("the store of responses failed", extra={"event": "response_store_failed"})
            raise unavailable(
                'The database of responses does not answer. Please try again later, or send "store": false.'
            ) from error

    def _shrink(self, connection: Connection, now: float) -> None:
        """Deletes expired responses, and the oldest ones beyond the limits."""
        connection.execute(sql.delete(_responses).where(_responses.c.expires <= now))
        newest_first = (_responses.c.expires.desc(), _responses.c.id)
        kept = sql.select(
            _responses.c.id,
            sql.func.row_number().over(order_by=newest_first).label("number"),
            sql.func.sum(_responses.c.size).over(order_by=newest_first).label("bytes"),
        ).subquery()
        beyond = sql.or_(kept.c.number > self._max_responses, kept.c.bytes > self._max_bytes)
        connection.execute(sql.delete(_responses).where(_responses.c.id.in_(sql.select(kept.c.id).where(beyond))))


def _connect(url: str) -> sql.Engine:
    """Returns an engine with the table of responses. Raises ``ValueError``, which does not tell the password."""
    try:
        address = sql.make_url(url)
        shown = address.render_as_string(hide_password=True)
    except ArgumentError as error:
        raise ValueError(
            "response_store is not an address of a database; write one such as sqlite:////var/lib/responses.db or "
            "postgresql+psycopg://user:password@host/name"
        ) from error
    is_file = address.get_backend_name() == "sqlite"
    if is_file and address.database in (None, "", ":memory:"):
        raise ValueError(f"response_store is {shown}, which names no file; write sqlite:////path/of/responses.db")
    try:
        engine = sql.create_engine(
            address, pool_pre_ping=True, connect_args={"timeout": _BUSY_SECONDS} if is_file else {}
        )
    except NoSuchModuleError as error:
        raise ValueError(f"response_store is {shown}: SQLAlchemy knows no such kind of database") from error
    except ModuleNotFoundError as error:
        raise ValueError(f"response_store is {shown}, whose driver {error.name} is not installed") from error
    until = time.monotonic() + _BUSY_SECONDS
    while (failed := _prepare(engine, is_file=is_file)) is not None:
        reason = str(getattr(failed, "orig", None) or failed).splitlines()[0]
        if not (is_file and "locked" in reason and time.monotonic() < until):
            engine.dispose()
            raise ValueError(f"response_store is {shown}, which cannot be used: {reason}") from failed
        time.sleep(0.05)  # SQLite itself does not wait for another server that sets the journal's mode
    return engine


def _prepare(engine: sql.Engine, *, is_file: bool) -> SQLAlchemyError | None:
    """Makes the table if it is not there; returns the error if it cannot."""
    try:
        with engine.begin() as connection:
            if is_file:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")  # readers do not wait for writers
            _create(connection)
    except SQLAlchemyError as error:
        return None if _has_table(engine) else error  # another server may have made it at the same moment
    return None


def _create(connection: Connection) -> None:
    connection.execute(sql.schema.CreateTable(_responses, if_not_exists=True))
    for index in _responses.indexes:
        connection.execute(sql.schema.CreateIndex(index, if_not_exists=True))


def _has_table(engine: sql.Engine) -> bool:
    try:
        return sql.inspect(engine).has_table(_responses.name)
    except SQLAlchemyError:
        return False
