"""What a database says when it fails, as one typed error with one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from recallstack.errors import InputError

Fault = Literal["gone", "locked", "full", "missing", "refused", "damaged"]

_HINTS: dict[Fault, str] = {
    "gone": "it cannot be reached; start it or mend its address, then try again",
    "locked": "another process holds a lock on it; try again",
    "full": "its disk is full; make room, then try again",
    "missing": "a table is missing or of another version; make the schema (`ensure_schema`) or name another database",
    "refused": "it does not allow this; grant the rights or name another database",
    "damaged": "the file is damaged or no database; restore it or name another one",
}
_SQLITE: dict[int, Fault] = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "gone",
    sqlite3.SQLITE_CANTOPEN: "gone",
    sqlite3.SQLITE_READONLY: "refused",
    sqlite3.SQLITE_PERM: "refused",
    sqlite3.SQLITE_AUTH: "refused",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_CORRUPT: "damaged",
}
_POSTGRES: dict[str, Fault] = {
    "42P01": "missing",  # undefined_table
    "42703": "missing",  # undefined_column
    "42704": "missing",  # undefined_object: the type `vector`
    "3F000": "missing",  # invalid_schema_name
    "42501": "refused",  # insufficient_privilege
    "25006": "refused",  # read_only_sql_transaction
    "28000": "refused",  # invalid_authorization_specification
    "28P01": "refused",  # invalid_password
    "55P03": "locked",  # lock_not_available
    "40P01": "locked",  # deadlock_detected
    "40001": "locked",  # serialization_failure
    "57014": "locked",  # query_canceled: a statement's timeout
    "53100": "full",  # disk_full
    "3D000": "gone",  # invalid_catalog_name: no such database
}
"""Exact codes of PostgreSQL's appendix A; the classes 08, 53, 57 and 58 are below."""


class StoreError(InputError):
    """The store failed. What raised it was not saved, or not known to be: doing it again is safe.

    fault: what kind of failure. store: which store, as it is named to users.
    """

    def __init__(self, store: str, fault: Fault, what: str) -> None:
        super().__init__(f"{store}: {what} failed: {_HINTS[fault]}")
        self.store = store
        self.fault = fault


def fault_of(error: Exception) -> Fault | None:
    """What a driver's error means to a user; None for one that only a programmer can mend."""
    if isinstance(error, PoolTimeout):
        return "gone"
    if not isinstance(error, DBAPIError):
        return None
    original = error.orig
    code = getattr(original, "sqlite_errorcode", None)
    if code is not None:
        if code & 0xFF == sqlite3.SQLITE_ERROR and str(original).startswith(("no such table", "no such column")):
            return "missing"
        return _SQLITE.get(code & 0xFF)
    state = getattr(original, "sqlstate", None)
    if state is not None:
        if state in _POSTGRES:
            return _POSTGRES[state]
        return "gone" if state[:2] in ("08", "53", "57", "58") else None
    # Without a code the server never answered, or SQLite's driver refused by itself.
    if error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError)):
        return "gone"
    return None


@contextmanager
def explained(store: str, what: str) -> Iterator[None]:
    """Turns what a user can mend into a StoreError. The driver's own error is its cause; it holds no parameters."""
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        fault = fault_of(error)
        if fault is None:
            raise
        raise StoreError(store, fault, what) from error
