"""The memory system under scenarios: the real package over SQLite files of its own, on time that the harness moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.model import Given, Switch
from recallbench.scenarios.systems import memory_words as words
from recallbench.scenarios.systems.memory_host import Host
from recallbench.scenarios.systems.memory_process import FAILS, Model
from recallbench.scenarios.systems.notes_words import read
from recallstack.errors import InputError
from recallstack.systems.memory import Switches
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.lifecycle import Outcome
from recallstack.systems.memory.loop import closed_loop
from recallstack.systems.memory.model import Candidate, NewMemory, Receipt
from recallstack.systems.memory.portal import PortalStatus
from recallstack.systems.memory.recall import Recalled

SWITCHES = frozenset(one.name for one in dataclasses.fields(Switches))
VOCABULARY = Vocabulary(
    calls={
        **{name: words.names(kind) for name, kind in words.CALLS.items()},
        "start": words.names(words.Settings),
        "switch": frozenset(words.MODES),
    },
    probes={name: words.names(kind) for name, kind in words.PROBES.items()},
    faults={
        "database": frozenset(FAILS),
        "vectors": frozenset({"none", "gone"}),
        "embed": frozenset({"none", "error"}),
    },
    config=words.names(words.Settings),
    capabilities=frozenset({"search", "inject", "lifecycle", "extraction", "vectors", "clock"}),
)


class Session:
    """A chat host with a memory, and its admin side."""

    def __init__(
        self, given: Given, switches: Mapping[str, Switch], url: str | None = None, schema: str | None = None
    ) -> None:
        """url, schema: a PostgreSQL database in place of a temporary SQLite file."""
        settings = read(words.Settings, given.config, "config")
        try:
            put_in = msgspec.convert(dict(switches), Switches)
        except msgspec.ValidationError as error:
            raise InputError(f"memory-v2 switches: {error}") from None
        rows = [read(words.Row, row, f"memories, row {number}") for number, row in enumerate(given.memories, 1)]
        self._host = Host(settings, put_in, Model(given.vectors) if given.vectors else None, url, schema)
        try:
            if rows:
                self._host.save_before([(row, self._host.new(row)) for row in rows])
        except BaseException:
            self._host.close()
            raise
        self._does: Mapping[str, Callable[[Any], dict[str, Any]]] = {
            "start-admin": lambda _: _started(self._host.start_admin()),
            "rollback": lambda _: _status(self._host.portal.rollback()),
            "write": self._write,
            "compact": lambda one: self._saved(lambda: self._host.portal.compact(one.user, one.session)),
            "save-candidates": self._save_candidates,
            "remember": self._remember,
            "promote": self._promote,
            "reject": self._reject,
            "forget": lambda one: _changed(self._host.portal.lifecycle.forget(one.user, one.ids)),
            "expire": lambda one: _changed(self._host.portal.lifecycle.expire(one.user)),
            "turn": self._turn,
            "closed-loop": self._loop,
            "repay": self._repay,
            "recall": self._recall,
            "candidates": self._candidates,
            "memories": self._memories,
            "events": self._events,
            "status": self._state,
        }

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """There are no events: a turn is a call."""

    async def fault(self, name: str, value: Any) -> None:
        host = self._host
        if name != "embed":
            host.stores.faults[name] = value
        elif host.model is None:
            raise InputError("there is no embedder that could fail; give vectors")
        else:
            host.model.broken = value == "error"

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        host = self._host
        if name == "start":
            host.settings = self._changed_settings(arguments, name)
            started = _started(host.start())
            return {**started, **_status(host.portal.status())} if started["started"] else started
        if name == "switch":
            settings = self._changed_settings(arguments, name)
            try:
                status, error = host.portal.switch(settings.modes), ""
            except InputError as refused:
                return {**_status(host.portal.status()), "error": host.shown(str(refused))}
            host.settings = settings
            return {**_status(status), "error": error}
        return self._does[name](read(words.CALLS[name], arguments, name))

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._does[name](read(words.PROBES[name], arguments, name))

    async def close(self) -> None:
        self._host.close()

    def _changed_settings(self, changes: Mapping[str, Any], where: str) -> words.Settings:
        return read(words.Settings, {**msgspec.to_builtins(self._host.settings), **changes}, where)

    # Calls

    def _write(self, one: words.Row) -> dict[str, Any]:
        made = self._host.new(one)
        return self._saved(lambda: self._host.portal.write(one.user, one.session, made))

    def _saved(self, step: Callable[[], Receipt]) -> dict[str, Any]:
        """A receipt of memories. A refusal is an answer: what the host tells its user."""
        try:
            receipt, error = step(), ""
        except InputError as refused:
            receipt, error = Receipt(durable=False), self._host.shown(str(refused))
        return {"texts": self._texts(receipt.ids), **self._receipt(receipt), "error": error}

    def _kept(self, step: Callable[[], Receipt]) -> dict[str, Any]:
        """A receipt of candidates."""
        try:
            receipt, error = step(), ""
        except StoreError as failed:
            receipt, error = Receipt(durable=False), self._host.shown(str(failed))
        texts = {}
        if receipt.ids:
            texts = {one.id: one.content for one in self._host.portal.candidates(None, None)}
        return {"texts": [texts[one] for one in receipt.ids], **self._receipt(receipt), "error": error}

    def _receipt(self, receipt: Receipt) -> dict[str, Any]:
        remarks = [self._host.shown(one) for one in receipt.remarks]
        return {"ids": list(receipt.ids), "durable": receipt.durable, "debt": receipt.debt, "remarks": remarks}

    def _save_candidates(self, one: words.Save) -> dict[str, Any]:
        made = [NewMemory(content=text) for text in one.texts]
        return self._kept(lambda: self._host.portal.save_candidates(one.user, one.session, made))

    def _remember(self, one: words.Remember) -> dict[str, Any]:
        host = self._host
        host.reply, host.asked = one.reply, ""
        kept = self._kept(lambda: host.portal.remember_recent(one.user, one.session))
        return {**kept, "asked": host.asked}

    def _promote(self, one: words.Promote) -> dict[str, Any]:
        candidate = self._candidate(one.text)
        side = self._host.admin if candidate.durable and one.side == "admin" else self._host.portal
        return self._saved(lambda: side.promote(candidate.id, one.caller))

    def _reject(self, one: words.Reject) -> dict[str, Any]:
        self._host.portal.reject(self._candidate(one.text).id)
        return {}

    def _candidate(self, text: str) -> Candidate:
        for one in self._host.portal.candidates(None, None):
            if one.content == text:
                return one
        raise InputError(f"there is no candidate {text!r}; save it first")

    def _turn(self, one: words.Turn) -> dict[str, Any]:
        portal = self._host.portal
        turn = portal.prepare(one.user, one.session, one.text)
        remark = portal.finish(turn, one.reply)
        return {
            "prompt": turn.prompt,
            "mode": turn.mode,
            "recalled": self._texts(turn.recalled),
            "injected": self._texts(turn.injected),
            "remarks": [self._host.shown(one) for one in (*turn.remarks, remark) if one],
        }

    def _loop(self, one: words.User) -> dict[str, Any]:
        """The agent of the check answers with what it was given."""
        report = closed_loop(self._host.portal, self._host.admin, one.user, lambda prompt: prompt)
        return {"passed": list(report.passed), "failed": report.failed, "why": self._host.shown(report.why)}

    def _repay(self, _: words.Nothing) -> dict[str, Any]:
        paid = self._host.portal.repay()
        return {"debt": paid.debt, "remark": self._host.shown(paid.remark)}

    # Probes

    def _recall(self, one: words.Recall) -> dict[str, Any]:
        try:
            found, error = self._host.portal.recall(one.user, one.query, one.limit), ""
        except StoreError as failed:
            found, error = Recalled(), self._host.shown(str(failed))
        return {
            "ids": list(found.ids),
            "texts": [hit.content for hit in found.hits],
            "users": [hit.user for hit in found.hits],
            "pool": found.pool,
            "lexical": found.lexical,
            "remarks": [self._host.shown(one) for one in found.remarks],
            "error": error,
        }

    def _candidates(self, one: words.Listing) -> dict[str, Any]:
        side = self._host.admin if one.side == "admin" else self._host.portal
        try:
            found, error = side.candidates(one.user, one.status), ""
        except StoreError as failed:
            found, error = (), self._host.shown(str(failed))
        return {
            "texts": [candidate.content for candidate in found],
            "users": [candidate.user for candidate in found],
            "statuses": [candidate.status for candidate in found],
            "durable": all(candidate.durable for candidate in found),
            "error": error,
        }

    def _memories(self, one: words.Whose) -> dict[str, Any]:
        """The rows themselves, and which of them the vector table has."""
        rows = self._host.stores.rows(one.user)
        there = self._host.stores.with_vector()
        return {
            "ids": [row.id for row in rows if row.active],
            "texts": [row.content for row in rows if row.active],
            "archived": [row.content for row in rows if row.archived],
            "forgotten": [row.content for row in rows if row.forgotten],
            "vectors": [row.content for row in rows if (row.user, row.id) in there],
        }

    def _events(self, _: words.Nothing) -> dict[str, Any]:
        told = self._host.events
        return {
            "modes": [one.mode for one in told],
            "statuses": [one.status for one in told],
            "recalled": [len(one.recalled) for one in told],
            "injected": [len(one.injected) for one in told],
        }

    def _state(self, _: words.Nothing) -> dict[str, Any]:
        portal = self._host.portal
        status = _status(portal.status())
        return {**status, "sweeps": 0 if portal.worker is None else portal.worker.sweeps}

    def _texts(self, ids: Iterable[str]) -> list[str]:
        """Memories by text: an id that the memory system made says nothing."""
        wanted = list(ids)
        texts = {row.id: row.content for row in self._host.stores.rows(None)} if wanted else {}
        return [texts.get(one, "") for one in wanted]


def _started(why: str) -> dict[str, Any]:
    return {"started": not why, "error": why}


def _status(status: PortalStatus) -> dict[str, Any]:
    return {
        "health": status.health,
        "candidates": status.modes.candidates,
        "lifecycle": status.modes.lifecycle,
        "injection": status.modes.injection,
        "worker": status.worker,
        "debt": status.debt,
        "warnings": len(status.warnings),
    }


def _changed(outcome: Outcome) -> dict[str, Any]:
    return {
        "ids": [one for _, one in outcome.changed],
        "users": [user for user, _ in outcome.changed],
        "refused": outcome.refused,
        "debt": outcome.debt,
    }
