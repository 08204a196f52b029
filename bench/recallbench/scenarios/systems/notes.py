"""Notes search under scenarios: real files, a real index, and time that the harness moves.

A file's time is the virtual clock, so that two writes without `advance_ms` between them have the same mtime.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallbench.scenarios.base import Vocabulary
from recallbench.scenarios.model import Given, Switch
from recallbench.scenarios.systems import notes_words as words
from recallbench.scenarios.systems.notes_folder import Folder
from recallstack.errors import InputError
from recallstack.systems.notes import Message, Notes, NotesConfig, Prompt, Section, Switches, SyncReport
from recallstack.systems.notes.prompt import SECTION_NAME
from recallstack.systems.notes.vectors import QWEN3_INSTRUCTION

SWITCHES = frozenset(one.name for one in dataclasses.fields(Switches))
ROLES = {"user/message": "user", "assistant/message": "assistant"}
_CALLS: Mapping[str, type[msgspec.Struct]] = {
    "write": words.Write,
    "delete": words.Delete,
    "rename": words.Rename,
    "sync": words.Nothing,
    "sync-if-due": words.Nothing,
    "accept-spec-change": words.Nothing,
    "rebuild": words.Nothing,
    "delete-index": words.Nothing,
}
_PROBES: Mapping[str, type[msgspec.Struct]] = {
    "search": words.Search,
    "assemble": words.Assemble,
    "index": words.Nothing,
    "embedder": words.Nothing,
}
VOCABULARY = Vocabulary(
    events=frozenset(ROLES),
    calls={
        **{name: words.names(kind) for name, kind in _CALLS.items()},
        "reopen": words.names(words.Settings) | {"vectors"},
    },
    probes={name: words.names(kind) for name, kind in _PROBES.items()},
    faults={"embed": frozenset({"none", "error"}), "session_map": frozenset({"none", "broken", "missing"})},
    config=words.names(words.Settings),
    capabilities=frozenset({"notes", "vectors", "clock"}),
)
_LEAD = re.compile(r"^\[([^\]\n]+:\d+)\] ", re.MULTILINE)
"""How an item of the auto-recall section begins: where it was read."""
MODEL, NO_MODEL = "scenario", "none"
"""The embedder's name where vectors are given and the scenario names none; the name that turns it off."""


class Model:
    """The embeddings that a scenario gives. It keeps what it was asked, and fails while `fault` says so."""

    def __init__(self, name: str, vectors: Mapping[str, Sequence[float]]) -> None:
        lengths = {len(one) for one in vectors.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise InputError(f"embedder {name!r} has vectors of {sorted(lengths)} dimensions; all must have the same")
        self.name, self.fault = name, "none"
        self.documents: list[str] = []
        self.queries: list[str] = []
        self._vectors = {text.replace("$QWEN3", QWEN3_INSTRUCTION): list(one) for text, one in vectors.items()}
        self._zero = [0.0] * lengths.pop()

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.documents += texts
        return self._of(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.queries += texts
        return self._of(texts)

    def _of(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if self.fault == "error":
            raise ConnectionError
        return np.array([self._vectors.get(text, self._zero) for text in texts], np.float64)


class Session:
    """A folder of notes and whoever asks. `reopen` is a new process over the same files and the same index."""

    def __init__(self, given: Given, switches: Mapping[str, Switch]) -> None:
        self._settings = words.read(words.Settings, given.config, "config")
        try:
            self._switches = msgspec.convert(dict(switches), Switches)
        except msgspec.ValidationError as error:
            raise InputError(f"notes switches: {error}") from None
        self._vectors: Mapping[str, Sequence[float]] = given.vectors
        self._faults = {"embed": "none", "session_map": "none"}
        self._models: list[Model] = []
        self._prompt = Prompt((Section("persona", 0, "An assistant that reads the notes."),))
        self._folder = Folder(asyncio.get_running_loop().time)
        try:
            for file, text in given.files.items():
                self._folder.write(file, text)
            self._notes = self._open()
        except BaseException:
            self._folder.close()
            raise

    def _open(self) -> Notes:
        settings, folder = self._settings, self._folder
        if settings.session_map is not None:
            folder.write_map(settings.session_map, self._faults["session_map"])
        config = NotesConfig(
            database=folder.database,
            roots=(folder.root,),
            rule=settings.rule,
            session_map=None if settings.session_map is None else folder.session_map,
            owners=frozenset(settings.owners),
            query_instruction=settings.query_instruction.replace("$QWEN3", QWEN3_INSTRUCTION),
            switches=self._switches,
            **settings.of_notes,
        )
        model = None
        if settings.embedder != NO_MODEL and (self._vectors or settings.embedder):
            model = Model(settings.embedder or MODEL, self._vectors)
            model.fault = self._faults["embed"]
            self._models.append(model)
        return Notes(config, model, asyncio.get_running_loop().time)

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        said = words.read(words.Said, data, kind)
        message = Message(ROLES[kind], said.text)
        self._prompt = dataclasses.replace(self._prompt, messages=(*self._prompt.messages, message))

    async def fault(self, name: str, value: Any) -> None:
        self._faults[name] = value
        if name == "embed":
            for model in self._models:
                model.fault = value
        elif self._settings.session_map is None:
            raise InputError("there is no session map that could fail; give config.session_map")
        else:
            self._folder.write_map(self._settings.session_map, value)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name == "reopen":
            return self._reopen(dict(arguments))
        one = words.read(_CALLS[name], arguments, name)
        if isinstance(one, words.Write):
            self._folder.write(one.file, one.text * one.repeat)
        elif isinstance(one, words.Rename):
            self._folder.rename(one.file, one.to)
        elif isinstance(one, words.Delete):
            self._folder.delete(one.file)
        elif name == "sync":
            return self._told(self._notes.sync())
        elif name == "rebuild":
            return self._told(self._notes.rebuild())
        elif name == "sync-if-due":
            report = self._notes.sync_if_due()
            return {"synced": report is not None, **self._told(report or SyncReport())}
        elif name == "accept-spec-change":
            self._notes.accept_spec_change()
        else:
            self._notes.close()
            self._folder.delete_index()
            self._notes = self._open()
        return None

    def _reopen(self, changes: dict[str, Any]) -> None:
        if "vectors" in changes:
            self._vectors = words.read(words.Vectors, {"vectors": changes.pop("vectors")}, "reopen").vectors
        self._settings = words.read(words.Settings, {**msgspec.to_builtins(self._settings), **changes}, "reopen")
        self._notes.close()
        self._notes = self._open()

    async def probe(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        one = words.read(_PROBES[name], arguments, name)
        if isinstance(one, words.Search):
            return self._search(one)
        if isinstance(one, words.Assemble):
            return self._assemble(one)
        if name == "embedder":
            return {
                "documents": [text for model in self._models for text in model.documents],
                "queries": [text for model in self._models for text in model.queries],
            }
        found = dataclasses.asdict(self._notes.status())
        waits = found.pop("rule_waiting") is not None
        return {**found, "rule_waits": waits, "warnings": [self._folder.shown(one) for one in found["warnings"]]}

    def _search(self, asked: words.Search) -> dict[str, Any]:
        found = self._notes.search(asked.query, asked.session, asked.limit)
        return {
            "ids": [hit.id for hit in found.hits],
            "files": [hit.file for hit in found.hits],
            "texts": [hit.text for hit in found.hits],
            "scores": [hit.score for hit in found.hits],
            "levels": [hit.sensitivity for hit in found.hits],
            "remarks": list(found.remarks),
        }

    def _assemble(self, asked: words.Assemble) -> dict[str, Any]:
        query = asked.query
        if query is None:
            query = next((one.text for one in reversed(self._prompt.messages) if one.role == "user"), "")
        self._prompt = self._notes.assemble(self._prompt, query, asked.session)
        text = next((one.text for one in self._prompt.sections if one.name == SECTION_NAME), "")
        return {
            "sections": [one.name for one in self._prompt.sections],
            "orders": [one.order for one in self._prompt.sections],
            "messages": [one.text for one in self._prompt.messages],
            "text": text,
            "characters": len(text),
            "sources": _LEAD.findall(text),
        }

    def _told(self, report: SyncReport) -> dict[str, Any]:
        values: dict[str, Any] = msgspec.to_builtins(report)
        return {**values, "warnings": [self._folder.shown(one) for one in report.warnings]}

    async def close(self) -> None:
        self._notes.close()
        self._folder.close()
