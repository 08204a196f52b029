"""Lines of a child process, and that it is gone when it has to be: Ctrl-C, SIGTERM, inside a running loop."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems_support import QUESTIONS, nothing_left, python_command, running, small_set

from recallbench import Experiment
from recallbench.systems.process import LOG_BYTES, Child, Lines
from recallbench.systems.specs import systems_of


def lines_of(chunks: list[bytes], most: int) -> tuple[list[bytes], list[bytes]]:
    """(lines, heads of lines that are too long) of bytes that come in these pieces, up to the last line's end."""
    whole: list[bytes] = []
    long: list[bytes] = []
    lines = Lines(most, whole.append, long.append, lambda _: None)
    for chunk in chunks:
        lines.feed(chunk)
    return whole, long


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=8), st.integers(1, 20))
def test_lines_do_not_depend_on_how_the_bytes_come(data: bytes, cuts: list[int], most: int) -> None:
    data = data.replace(b"\x00", b"\n")  # more ends of lines than chance gives
    edges = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)]
    whole, long = lines_of(chunks, most)
    complete = data.split(b"\n")[:-1]
    assert whole == [line for line in complete if len(line) <= most and line.strip()]
    # One head for each line that is too long, also for one that has not ended yet.
    assert len(long) == sum(len(line) > most for line in data.split(b"\n"))
    assert all(len(head) > most for head in long)


def test_other_line_separators_are_part_of_a_line() -> None:
    """JSON may hold U+2028 and U+0085 as they are; only \\n ends a line."""
    text = '{"text": "a\u2028b\u0085c\rd"}'.encode()
    assert lines_of([text + b"\n"], 100)[0] == [text]


def test_of_a_long_log_the_end_is_kept() -> None:
    lines = Lines(10, lambda _: None, lambda _: None, lambda _: None)
    for number in range(10_000):
        lines.pipe_data_received(2, f"line {number}\n".encode())
    assert lines.log_lines(2) == ["line 9998", "line 9999"]
    assert sum(map(len, lines._log)) < 2 * LOG_BYTES


def test_a_last_line_without_its_end_is_read_when_the_process_is_gone() -> None:
    got: list[bytes] = []
    ended: list[str] = []

    async def main() -> None:
        lines = Lines(100, got.append, got.append, ended.append)
        child = await Child.start([sys.executable, "-I", "-S", "-c", "print('{}', end='')"], lines)
        await lines.exited.wait()
        await lines.writable.wait()
        await child.stop(1.0)

    asyncio.run(main())
    assert got == [b"{}"]
    assert ended == ["exited with code 0"]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process_and_no_run(sent: signal.Signals, tmp_path: Path) -> None:
    """The system hangs at the third question and ignores SIGTERM; the harness is told to end."""
    if signal.getsignal(sent) is signal.SIG_IGN:
        pytest.skip("this process ignores the signal (a job in the background), and so do its children")
    spec = f"it=stdio:{python_command('hang-deaf', str(tmp_path))}"
    dataset = small_set(tmp_path / "set")
    command = [sys.executable, "-m", "recallbench", "run", "--dataset", str(dataset), "--system", spec]
    with subprocess.Popen(
        [*command, "--warm-up", "0", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as harness:
        system = wait_for_hang(harness, tmp_path)
        harness.send_signal(sent)
        _, err = harness.communicate(timeout=60)
    assert harness.returncode == 130
    assert err.strip() == "recallbench: error: interrupted"
    assert psutil.wait_procs([system], timeout=5)[1] == []
    assert [one.name for one in (tmp_path / "out").iterdir() if not one.name.startswith(".")] == []


def wait_for_hang(harness: subprocess.Popen[str], word: Path) -> psutil.Process:
    """The faulty system, once it is there and takes no more processor time than a process that waits."""
    while harness.poll() is None:
        found = [one for one in running("faulty_system.py") if str(word) in one.cmdline()]
        if found and found[0].ppid() == harness.pid and found[0].status() == psutil.STATUS_SLEEPING:
            return found[0]
    raise AssertionError(f"the harness ended with {harness.returncode}")


def test_a_system_is_asked_from_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook, whose cells run in a loop."""
    dataset = small_set(tmp_path / "set")

    async def cell() -> list[float]:
        result = Experiment(dataset, [f"it=stdio:{python_command('good', str(tmp_path))}"], ["RR"])
        return result.table()["mean"].tolist()

    with nothing_left(str(tmp_path)):
        assert asyncio.run(cell()) == [1.0]


def test_a_system_value_can_be_run_twice(tmp_path: Path) -> None:
    from recallbench.cache.candidates import CandidateCache
    from recallbench.datasets.registry import load

    labelled = load(str(small_set(tmp_path / "set")))
    [system] = systems_of([f"it=stdio:{python_command('good', str(tmp_path))}"], CandidateCache())
    with nothing_left(str(tmp_path)):
        assert system.run(labelled, 5).ids == system.run(labelled, 5).ids
        assert len(system.run(labelled, 5).ids) == len(QUESTIONS)
