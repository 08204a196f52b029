"""What becomes of each question when a connection is lost, with connections made for the test."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from systems_support import QUESTIONS

from recallbench.datasets.model import LabelledSet, Question, SetInfo
from recallbench.systems.base import SystemRun
from recallbench.systems.external import ExternalSystem
from recallbench.systems.faults import Fault, Lost
from recallbench.systems.settings import StdioSettings
from recallbench.systems.wire import Hello, Hit, Reply
from recallstack.ranking.rows import Corpus, Memory

SET = LabelledSet(
    SetInfo("t"),
    {"main": Corpus.of("main", [Memory(id=name.replace("q", "m"), content=name) for name in QUESTIONS])},
    tuple(Question(id=name, text=name, relevant={name.replace("q", "m"): 2}) for name in QUESTIONS),
)


class Made:
    """A connection whose `ask` is a function of the question; the log holds what was asked and done."""

    takes_memories = True

    def __init__(self, log: list[str], ask: Callable[[Made, str], object], in_a_row: bool = False) -> None:
        self.notes: Counter[str] = Counter()
        self.log, self.behave, self.in_a_row = log, ask, in_a_row
        self.closed = asyncio.Event()

    async def open(self) -> Hello:
        self.log.append("open")
        return Hello("made", "", frozenset({"search", "session"}))

    async def reset(self, corpus: str) -> None: ...

    async def index(self, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
        return {}

    async def ask(self, question: Question, top_k: int) -> Reply:
        self.log.append(question.id)
        done = self.behave(self, question.id)
        if asyncio.iscoroutine(done):
            await done
        return Reply((Hit(question.id.replace("q", "m"), 1.0),))

    async def close(self, gently: bool = True) -> None:
        self.log.append("close" if gently else "kill")
        self.closed.set()


def drive(ask: Callable[[Made, str], object], in_a_row: bool = False, **settings: Any) -> tuple[SystemRun, list[str]]:
    log: list[str] = []
    made = StdioSettings(**{"warm_up": 0, **settings})
    system = ExternalSystem("made", {}, made, lambda: Made(log, ask, in_a_row))
    return system.run(SET, 5), log


def failed(run: SystemRun) -> dict[str, str]:
    assert run.observed is not None
    return {name: error for name, error in zip(QUESTIONS, run.observed.errors, strict=True) if error}


async def until(log: list[str], count: int) -> None:
    """Wait, without time, until so many lines are in the log."""
    while len(log) < count:
        await asyncio.sleep(0)


def test_those_beside_a_hanging_question_are_asked_again_in_their_order() -> None:
    """Three at once: q-1 hangs; q-2 and q-3 wait until the process is killed for it, and go to the front again."""

    async def ask(connection: Made, name: str) -> None:
        log = connection.log
        if log.count("open") > 1 or name in QUESTIONS[3:]:
            return
        await until(log, 4)  # open and three questions
        if name == "q-1":
            raise Lost("gave no reply", hung=True)
        await connection.closed.wait()
        raise Lost("was ended by SIGKILL")

    run, log = drive(ask, concurrency=3)
    assert failed(run) == {"q-1": "gave no reply"}
    assert log[:6] == ["open", "q-1", "q-2", "q-3", "kill", "kill"]  # at once, and when the connection is dropped
    assert log[6:10] == ["open", "q-2", "q-3", "q-4"]
    assert run.notes == ("it was started again",)


def test_of_several_under_way_at_a_death_each_is_asked_alone_and_the_culprit_is_found() -> None:
    async def ask(connection: Made, name: str) -> None:
        if connection.log.count("open") == 1:
            await until(connection.log, 4)
            raise Lost("exited")
        if name == "q-2":
            raise Lost("exited")

    run, log = drive(ask, concurrency=3)
    assert failed(run) == {"q-2": "exited"}
    assert log == [
        *["open", "q-1", "q-2", "q-3", "close"],
        *["open", "q-1", "q-2", "close"],  # alone: q-1 is answered, q-2 was it
        *["open", "q-3", "q-4", "q-5", "q-6", "close"],
    ]


def test_losses_in_a_row_end_a_connection_that_needs_no_restart() -> None:
    """Every other question is lost: never two in a row, so that a bound of one is not reached."""

    def every_other(connection: Made, name: str) -> None:
        if int(name[-1]) % 2:
            raise Lost("too slow", own=True)

    run, _ = drive(every_other, in_a_row=True, restarts=1)
    assert failed(run) == {"q-1": "too slow", "q-3": "too slow", "q-5": "too slow"}
    run, _ = drive(every_other, in_a_row=False, restarts=1)
    assert set(failed(run)) == {"q-1", "q-3", "q-4", "q-5", "q-6"}
    assert failed(run)["q-4"].startswith("was not asked any more: it was lost 2 times (restarts: 1)")


def test_warm_up_is_not_counted_and_its_faults_are_nobodys() -> None:
    asked: list[str] = []

    def ask(connection: Made, name: str) -> None:
        asked.append(name)
        if len(asked) == 1:
            raise Fault("cold")

    run, log = drive(ask, warm_up=2)
    assert failed(run) == {}
    assert log == ["open", "q-1", "q-2", *QUESTIONS, "close"]
    assert run.observed is not None
    assert len(run.observed.latency_ms) == len(QUESTIONS)


def test_a_question_that_failed_is_not_repeated() -> None:
    def ask(connection: Made, name: str) -> None:
        if name == "q-2":
            raise Fault("bad")

    run, log = drive(ask, repeats=3)
    assert failed(run) == {"q-2": "bad"}
    assert Counter(log) == {"open": 1, "close": 1, "q-2": 1, **{name: 3 for name in QUESTIONS if name != "q-2"}}


def test_progress_is_told_for_each_question() -> None:
    told: list[str] = []
    system = ExternalSystem("made", {}, StdioSettings(warm_up=0), lambda: Made([], lambda *_: None))
    system.progress = told.append
    system.run(SET, 5)
    assert told == ["made"] * len(QUESTIONS)
