"""What the lane keeps of a session. Every value is frozen: a step gives the next one."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct

_REF = re.compile(r"m([1-9][0-9]{0,17})", re.ASCII)


class Block(Struct, frozen=True):
    """An active block: the messages with these ids are folded into a summary."""

    ids: tuple[str, ...]
    summary: str


class Fold(Struct, frozen=True):
    """Fold state. folds: blocks made so far. boundary: id of the newest message in any block."""

    folds: int = 0
    boundary: str | None = None


class Compress(Struct, frozen=True):
    """A `compress` call of the model, made on the next request: fold the messages from ref `first` to `last`."""

    first: str
    last: str
    summary: str


class Baseline(Struct, frozen=True):
    """The last settled usage. tokens: input tokens. ids: of the messages of the request that it was billed for."""

    tokens: int
    ids: tuple[str, ...]


class Session(Struct, frozen=True, kw_only=True):
    """A session.

    agent: the client that it is bound to; the binding is sticky. persona: a hash of the system text of its last
    stamped request. refs: message ids; the n-th has ref `m<n>`. blocks: active ones, oldest first.
    """

    key: str
    agent: str | None = None
    persona: str | None = None
    refs: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    fold: Fold = Fold()
    pending: Compress | None = None
    baseline: Baseline | None = None


def covered(session: Session) -> frozenset[str]:
    """Ids of the messages in active blocks."""
    return frozenset(one for block in session.blocks for one in block.ids)


def with_refs(session: Session, ids: Iterable[str]) -> Session:
    """The session with a ref for each message; those that have one keep it."""
    refs = dict.fromkeys((*session.refs, *ids))
    return msgspec.structs.replace(session, refs=tuple(refs))


def refs_of(session: Session, ids: Iterable[str]) -> tuple[str, ...]:
    """The ref of each message, empty where it has none."""
    places = {one: place for place, one in enumerate(session.refs, 1)}
    return tuple(f"m{places[one]}" if one in places else "" for one in ids)


def fold_pending(session: Session) -> tuple[Session, bool]:
    """The session after its pending `compress`, and whether that made a block.

    It makes none where a ref is unknown or the range is empty. A block inside the new one is absorbed.
    """
    call = session.pending
    if call is None:
        return session, False
    cleared = msgspec.structs.replace(session, pending=None)
    first, last = _place(call.first), _place(call.last)
    if not 1 <= first <= last <= len(session.refs):
        return cleared, False
    ids = session.refs[first - 1 : last]
    blocks = (*(block for block in session.blocks if not set(block.ids) <= set(ids)), Block(ids, call.summary))
    places = {one: place for place, one in enumerate(session.refs)}
    boundary = max((one for block in blocks for one in block.ids), key=lambda one: places.get(one, -1))
    fold = Fold(session.fold.folds + 1, boundary)
    return msgspec.structs.replace(cleared, blocks=blocks, fold=fold), True


def _place(ref: str) -> int:
    found = _REF.fullmatch(ref)
    return int(found[1]) if found else 0
