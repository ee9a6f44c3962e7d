"""Connections to a ledger in Postgres, which send statements in groups.

A charge takes two round trips: one to begin, lock and read, one to write and commit. Each statement of the first group sees
all earlier commits, because the transaction is READ COMMITTED and the lock is a statement of its own before them.

The lock is an advisory lock of the transaction. Its key contains the table of entries, so that ledgers in two schemas of
one database do not wait for each other, and every address of one ledger has the same key. These depend on it: entry numbers
without gaps, each entry's `previous`, `spent` and the totals of accounts and users, the order of release, and counts of
reports. Every write transaction takes it (`Store.writing`, `Store.deciding`); readers do not. It ends with the transaction
or the connection, also on another server after a failover, where entries that were not replicated are gone with their lock.
A writer that ignores it cannot fork the chain: two entries with one number violate the primary key.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DisconnectionError

from tidegate.extras import extra
from tidegate.ledger.statements import Read, Values

with extra("postgres", "A ledger in Postgres"):
    import psycopg

# "tide", and the object id of the table of entries; 0 while there is none: ledgers are created one after the other
LOCK = "1953064037, coalesce(to_regclass('tidegate_entries')::oid, 0)::int8::bit(32)::int4"
REPLY_SECONDS = 90  # for a group of statements, more than the wait for a lock
_LOCK_TABLE = f"SELECT pg_advisory_xact_lock({LOCK})"
_LOCK = f"SELECT set_config('lock_timeout', %s, true), pg_advisory_xact_lock({LOCK})"
# A server that vanished without a word: libpq notices within half a minute instead of hours.
_NETWORK = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
_NO_REPLY = "The server did not reply in time."
_INTEGERS = {psycopg.adapters.types[name].oid: int for name in ("int2", "int4", "int8")}


class LedgerConnection(psycopg.Connection[Any]):
    """A connection that sends statements in groups, each statement prepared on the server at its first use.

    A group is one pipeline of libpq. After an error the server skips the rest of its group, also a commit. Pending writes
    are sent before the next statement, or together with the commit.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._pending: list[tuple[str, Values]] = []
        self._names: dict[str, bytes] = {}  # of prepared statements
        self._deadline: float | None = None

    def begin_write(self, reads: Sequence[Read], *, seconds: float) -> list[list[Any]]:
        """Begin a transaction, take the lock, and return the rows of all reads."""
        parts = [(statement.postgresql, values) for statement, values in reads]
        return self._run([(_LOCK, (f"{int(seconds * 1000)}ms",)), *parts])[1:]

    def lock_table(self) -> None:
        """Take the lock of a ledger that was created while this transaction waited for its creator."""
        self._run([(_LOCK_TABLE, ())])

    def read_all(self, reads: Sequence[Read]) -> list[list[Any]]:
        """Return the rows of all reads, in one round trip."""
        pending, self._pending = self._pending, []
        parts = [(statement.postgresql, values) for statement, values in reads]
        return self._run([*pending, *parts])[len(pending) :]

    def write_later(self, text: str, values: Values) -> None:
        """Send a statement that returns nothing before the next one, or with the commit, where its error appears."""
        self._pending.append((text, values))

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        if self._pending:
            self.read_all([])
        return super().cursor(*arguments, **options)

    def commit(self) -> None:
        pending, self._pending = self._pending, []
        if pending or self.closed or self._is_in_transaction:
            self._run(pending, end=b"COMMIT")

    def rollback(self) -> None:
        self._pending = []
        if not self.closed and self._is_in_transaction:  # if it is closed, the server does so
            self._run([], end=b"ROLLBACK")  # the driver's own would discard all prepared statements

    @property
    def _is_in_transaction(self) -> bool:
        return self.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def _run(self, statements: Sequence[tuple[str, Values]], *, end: bytes = b"") -> list[list[Any]]:
        """Send statements together, in a transaction, and return the rows of each.

        If a reply takes longer than `REPLY_SECONDS`, or on an interrupt, the connection is closed.
        """
        if self.closed:
            raise psycopg.OperationalError("The connection is closed.")
        before = [] if self._is_in_transaction else [self._get_tx_start_command()]
        try:
            replies = self._exchange(before, statements, [end] if end else [])
        except BaseException:
            self.pgconn.finish()
            raise
        for reply in replies:
            if reply.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                error = psycopg.errors.error_from_result(reply)
                if isinstance(
                    error, psycopg.errors.InvalidSqlStatementName
                ):  # discarded, as the driver does after DROP
                    self._names.clear()
                raise error
        return [_rows(reply) for reply in replies[len(before) : len(before) + len(statements)]]

    def _exchange(
        self, before: Sequence[bytes], statements: Sequence[tuple[str, Values]], after: Sequence[bytes]
    ) -> list[Any]:
        """Send a group of commands and prepared statements, and return their results, and those of failed preparations."""
        server, until = self.pgconn, monotonic() + REPLY_SECONDS
        new: dict[
            int, tuple[str, bytes]
        ] = {}  # statements that are prepared in this group, by the index of their result
        server.enter_pipeline_mode()
        count = 0
        for command in before:
            server.send_query_params(command, None)
            count += 1
        for text, values in statements:
            name = self._names.get(text) or next((name for known, name in new.values() if known == text), None)
            if name is None:
                name = b"tidegate_%d" % (len(self._names) + len(new))
                new[count] = (text, name)
                server.send_prepare(name, _numbered(text))
                count += 1
            server.send_query_prepared(name, [_parameter(value) for value in values])
            count += 1
        for command in after:
            server.send_query_params(command, None)
            count += 1
        server.pipeline_sync()
        while server.flush():
            self._await(until, select.POLLIN | select.POLLOUT)
            server.consume_input()
        replies = [self._reply(until) for _ in range(count)]
        self._result(until)  # of the synchronization
        server.exit_pipeline_mode()
        for index, (text, name) in new.items():
            if replies[index].status == psycopg.pq.ExecStatus.COMMAND_OK:
                self._names[text] = name
        failed = psycopg.pq.ExecStatus.FATAL_ERROR
        return [reply for index, reply in enumerate(replies) if index not in new or reply.status == failed]

    def _reply(self, until: float) -> Any:
        """Return the result of the next command; libpq separates results by an empty one."""
        result, separator = self._result(until), self._result(until)
        if result is None or separator is not None:
            raise psycopg.OperationalError("The server sent results out of order.")
        return result

    def _result(self, until: float) -> Any:
        while self.pgconn.is_busy():
            self._await(until, select.POLLIN)
            self.pgconn.consume_input()
        return self.pgconn.get_result()

    def _await(self, until: float, events: int) -> None:
        if not _poll(self.pgconn.socket, events, max(0.0, until - monotonic())):
            raise psycopg.OperationalError(_NO_REPLY)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Close the connection if a reply takes longer than `REPLY_SECONDS`."""
        before, self._deadline = self._deadline, monotonic() + REPLY_SECONDS
        try:
            yield
        finally:
            self._deadline = before

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        return super().wait(gen if self._deadline is None else self._until_deadline(gen), *arguments, **options)

    def _until_deadline(self, work: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            state = next(work)
            while True:
                is_ready = yield state
                if not is_ready and self._deadline is not None and monotonic() > self._deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(_NO_REPLY)
                state = work.send(is_ready)
        except StopIteration as end:
            return end.value

    def is_alive(self) -> bool:
        """Return whether the server has not closed this idle connection. It costs no round trip."""
        if self.closed:
            return False
        try:
            while _poll(self.pgconn.socket, select.POLLIN, 0):
                self.pgconn.consume_input()  # a notice, or an error: the end of the connection
        except psycopg.Error:
            return False
        return True


def _poll(socket: int, events: int, seconds: float) -> bool:
    """Wait until a socket is ready; return whether it is."""
    poll = select.poll()
    poll.register(socket, events)
    return bool(poll.poll(seconds * 1000))


def _numbered(text: str) -> bytes:
    """Return a statement with the placeholders of the protocol: $1, $2, ..."""
    first, *rest = text.split("%s")
    return "".join([first, *(f"${at}{part}" for at, part in enumerate(rest, 1))]).encode()


def _parameter(value: str | int | float) -> bytes:
    text = value if isinstance(value, str) else repr(value)
    if "\0" in text:  # it would end the text
        raise psycopg.DataError("A text for Postgres cannot contain a zero byte.")
    return text.encode()


def _rows(reply: Any) -> list[Any]:
    """Return the rows of a result: integers as numbers, all else as text."""
    columns = range(reply.nfields)
    read = [_INTEGERS.get(reply.ftype(column), bytes.decode) for column in columns]
    return [tuple(read[column](reply.get_value(row, column)) for column in columns) for row in range(reply.ntuples)]


def open_engine(url: URL, **options: Any) -> Engine:
    """Return an engine for a ledger. Its connections are replaced after the server closed them."""
    network = {name: value for name, value in _NETWORK.items() if name not in url.query}
    engine = create_engine(url, isolation_level="READ COMMITTED", connect_args=network, **options)

    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, record: Any, arguments: Any, named: Any) -> Any:
        return LedgerConnection.connect(*arguments, **named)

    @event.listens_for(engine, "checkout")
    def _check(connection: Any, record: Any, proxy: Any) -> None:
        if not connection.is_alive():
            raise DisconnectionError

    return engine
