"""The fault table of a system on stdio: a real process that does one thing wrong, through `recallbench run`.

For each fault: the message, the exit code, and that the other questions and the other system are kept.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from systems_support import QUESTIONS, Outcome, python_command, run_system

PERFECT = dict.fromkeys(QUESTIONS, 1.0)
Captured = pytest.CaptureFixture[str]


def faulty(folder: Path, capsys: Captured, mode: str, *options: str, **settings: object) -> Outcome:
    folder.mkdir(exist_ok=True)
    # The folder is an argument of the command, so that whatever is left of it can be found.
    return run_system(
        folder, capsys, f"stdio:{python_command(mode, str(folder))}", *options, **{"stop_s": 0.5, **settings}
    )


def invalid(found: Outcome) -> str:
    """The message of a run that is INVALID: exit code 2, and written all the same with the other system."""
    assert found.code == 2
    assert "INVALID" in found.err
    assert "Traceback" not in found.err + found.out
    assert found.folder is not None
    assert (found.folder / "runs" / "bm25-okapi.trec").is_file()
    [message] = found.checks["failed-questions"]
    return message


def kept(found: Outcome, *lost: str) -> None:
    """Every question but these has its answer; these score the worst value."""
    assert found.rr == {**PERFECT, **dict.fromkeys(lost, 0.0)}
    assert set(found.failed) == set(lost)


def test_a_good_system_is_valid_and_perfect(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "good")
    assert found.code == 0
    kept(found)
    assert found.manifest["systems"]["it"]["name"] == "faulty"
    assert "Latency on our side: it p50" in found.out
    assert found.manifest["latency"]["it"]["n"] == 6


# One question fails and five are kept: mode -> what is said of q-3.
ONE_QUESTION = {
    "garbage": "answered a line of 15 bytes that is no JSON",
    "not-utf8": "(not UTF-8)",
    "deep": "that is no JSON",
    "big-line": "answered a line of more than 4000000 bytes (max_bytes)",
    "other-id": "answered a reply with id '9999', which was not asked",
    "no-id": "answered a reply without an id; echo the id of the request",
    "noise": "keep standard output for answers",
    "error": "answered with an error: database is locked",
    "error-object": "answered with an error: database is locked",
    "no-hits": "answered without hits (a list), got nothing",
    "hits-object": "answered without hits (a list), got an object",
    "hit-text": "answered hits[0] that is no object, got a text",
    "hit-nothing": "answered hits[0] without id, source_ids or text",
    "unknown": "answered an unknown id, 'zzz-1': no memory of corpus 'main'",
    "unknown-source": "answered an unknown source id, 'zzz-1'",
    "nan": "answered hits[0].score nan; it must be a finite number",
    "infinite": "answered hits[0].score inf; it must be a finite number",
    "huge": "answered hits[0].score inf; it must be a finite number",
    "text-score": "answered hits[0].score that is no number, got a text",
    "bool-score": "answered hits[0].score that is no number, got true or false",
    "half-character": "answered hits[0].id with half a character",
    "too-many": "answered 21 hits for top_k 20",
    "trace": "answered a trace that is no object",
}


@pytest.mark.parametrize("mode", sorted(ONE_QUESTION))
def test_a_bad_answer_costs_its_question_alone(mode: str, tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, mode)
    message = invalid(found)
    kept(found, "q-3")
    assert ONE_QUESTION[mode] in found.failed["q-3"]
    assert "no valid answer to 1 of 6 questions (first: q-3)" in message
    assert ONE_QUESTION[mode] in message
    # What came may be private: it is in no message and no file.
    assert "secret garden" not in found.out + found.err


def test_a_reply_under_another_id_is_not_taken_for_a_later_question(tmp_path: Path, capsys: Captured) -> None:
    """The answer that follows the noise is of q-3, which has failed already; q-4 must not get it."""
    found = faulty(tmp_path, capsys, "noise")
    assert found.rr["q-4"] == 1.0
    assert "a late reply to a request was dropped" in found.checks["system-note"]


def test_a_crash_costs_its_question_and_the_system_is_started_again(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "crash")
    invalid(found)
    kept(found, "q-3")
    assert found.failed["q-3"] == "exited with code 3 (its log ends: Error: the index is gone)"
    assert "it was started again" in found.checks["system-note"]


def test_a_system_that_is_killed_is_started_again(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "killed")
    invalid(found)
    kept(found, "q-3")
    assert found.failed["q-3"] == "was ended by SIGKILL"


def test_a_system_that_closes_its_output_and_goes_on_is_ended(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "closes-output")
    invalid(found)
    kept(found, "q-3")
    assert found.failed["q-3"] == "closed its output and went on running"


def test_a_crash_at_every_question_ends_after_the_bound_of_restarts(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "crash-always", restarts=2)
    invalid(found)
    kept(found, *QUESTIONS)
    # Asked: the first process and two more. The others are not asked, and say why.
    assert [found.failed[one].startswith("exited with code 3") for one in QUESTIONS] == [True] * 3 + [False] * 3
    assert found.failed["q-6"].startswith("was not asked any more: it was lost 3 times (restarts: 2), at the last it")


def test_a_crash_without_restarts_ends_at_once(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "crash", restarts=0)
    invalid(found)
    kept(found, *QUESTIONS[2:])
    assert "it was lost once (restarts: 0)" in found.failed["q-4"]


@pytest.mark.parametrize("mode", ["hang", "hang-deaf"])
def test_a_hang_costs_its_question_and_the_process_is_ended(mode: str, tmp_path: Path, capsys: Captured) -> None:
    """hang-deaf also ignores SIGTERM, so that only SIGKILL ends it."""
    found = faulty(tmp_path, capsys, mode, timeout_s=1.0, stop_s=0.1)
    invalid(found)
    kept(found, "q-3")
    assert found.failed["q-3"] == "gave no reply to search in 1 s"


def test_a_process_that_ignores_the_end_of_input_and_sigterm_is_killed(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "deaf", stop_s=0.1)
    assert found.code == 0  # how it leaves is no question's fault; `systems check` tells its author
    kept(found)


def test_a_grandchild_that_holds_the_pipes_is_killed_too(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "grandchild", stop_s=0.1)
    assert found.code == 0
    kept(found)


# The system never gets as far as a question: mode -> what is said.
NO_START = {
    "no-hello": "was not asked: at the start it gave no reply to hello in 1 s",
    "exits": "was not asked: at the start it exited with code 7 (its log ends: missing DATABASE_URL)",
    "wrong-protocol": "answered hello with protocol 2; this harness speaks protocol 1",
    "refuses": "answered with an error: I speak protocol 7",
    "nameless": "answered hello without a name (a text), got nothing",
    "unable": "neither search nor inject among its capabilities",
    "capacity": "capacity 0; it must be a whole number of at least 1",
    "index-error": "answered with an error: disk is full (corpus 'main' was not taken)",
    "index-map": "answered index with an id map that names 'm-77', which was not sent",
}


@pytest.mark.parametrize("mode", sorted(NO_START))
def test_a_system_that_cannot_be_asked_fails_every_question_and_no_other_system(
    mode: str, tmp_path: Path, capsys: Captured
) -> None:
    found = faulty(tmp_path, capsys, mode, start_timeout_s=1.0 if mode == "no-hello" else 60.0)
    message = invalid(found)
    kept(found, *QUESTIONS)
    assert NO_START[mode] in message
    assert "6× it" in message


def test_a_crash_while_it_takes_memories_is_tried_again_and_then_given_up(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "index-crash", restarts=1)
    assert "it was lost 2 times (restarts: 1), at the last it exited with code 4" in invalid(found)
    kept(found, *QUESTIONS)


def test_a_capability_that_is_asked_for_and_not_declared(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "good", op="inject")
    assert "declares no capability inject" in invalid(found)


# Harmless: exit code 0 and every answer kept; mode -> (name of a check, what it says).
HARMLESS = {
    "banner": ("system-note", "a line before the reply to hello is no JSON"),
    "twice": ("system-note", "a second reply to a request was dropped (6×)"),
    "flood": ("", ""),
    "fewer": ("", ""),
    "no-score": ("", ""),
}


@pytest.mark.parametrize("mode", sorted(HARMLESS))
def test_what_does_no_harm_is_at_most_a_warning(mode: str, tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, mode)
    assert found.code == 0
    kept(found)
    name, said = HARMLESS[mode]
    assert any(said in one for one in found.checks.get(name, [""]))


def test_repeated_ids_count_once_at_their_first_place(tmp_path: Path, capsys: Captured) -> None:
    """Each list is another memory and then the answer three times: found at rank 2, two repeats a question."""
    found = faulty(tmp_path, capsys, "repeats")
    assert found.code == 0
    assert found.rr == dict.fromkeys(QUESTIONS, 1 / 2)
    assert found.checks["repeated-ids"] == ["12 repeated ids; each counted once, at its first place"]


def test_a_limit_that_was_swallowed_is_told_with_its_number(tmp_path: Path, capsys: Captured) -> None:
    """Three rows for every question, where 20 were asked for, the capacity is 20 and six memories are there."""
    found = faulty(tmp_path, capsys, "swallows")
    assert found.code == 0
    kept(found)
    [said] = found.checks["short-lists"]
    assert said.startswith("always the same number of rows where 20 were asked for")
    assert "it 3" in said


def test_an_empty_answer_is_an_answer(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "empty")
    assert found.code == 0
    assert found.failed == {}
    assert found.rr == {**PERFECT, "q-3": 0.0}


def test_replies_out_of_order_find_their_questions(tmp_path: Path, capsys: Captured) -> None:
    """The system answers three questions at a time, the last one first."""
    found = faulty(tmp_path, capsys, "out-of-order", concurrency=3)
    assert found.code == 0
    kept(found)


def test_of_several_under_way_only_the_one_that_kills_the_system_is_lost(tmp_path: Path, capsys: Captured) -> None:
    """All six are sent at once; q-3 ends the process, and those beside it are asked again, one by one."""
    found = faulty(tmp_path, capsys, "crash", concurrency=6)
    invalid(found)
    kept(found, "q-3")


def test_of_several_under_way_only_the_one_that_hangs_is_lost(tmp_path: Path, capsys: Captured) -> None:
    """q-1 and q-2 are answered; q-3 blocks the process, so that those behind it get no answer either.

    They run into the same deadline as q-3 and cannot be told apart from it: whoever is unanswered then fails, with
    concurrency 2 at most q-3 and q-4, and the rest is kept.
    """
    found = faulty(tmp_path, capsys, "hang", concurrency=2, timeout_s=1.0, stop_s=0.1)
    invalid(found)
    assert "q-3" in found.failed
    assert set(found.failed) <= {"q-3", "q-4"}
    assert all(found.rr[one] == 1.0 for one in QUESTIONS if one not in found.failed)


def test_flakiness_is_measured_and_the_first_answer_counts(tmp_path: Path, capsys: Captured) -> None:
    """The second round returns a second row to each question."""
    found = faulty(tmp_path, capsys, "flaky", "--repeats", "2")
    assert found.code == 0
    assert found.checks["flaky"] == [
        "another list came back for 6 of 6 questions in 2 repeats; the first answer counts"
    ]
    assert (found.folder / "runs" / "it.trec").read_text().count("\n") == 6
    assert "flaky" not in faulty(tmp_path / "b", capsys, "good", "--repeats", "2").checks


def test_a_question_that_fails_in_a_repeat_has_failed(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "slow-second", "--repeats", "2", timeout_s=1.0, stop_s=0.1)
    invalid(found)
    kept(found, "q-3")


def test_answers_on_another_descriptor_leave_standard_output_free(tmp_path: Path, capsys: Captured) -> None:
    found = faulty(tmp_path, capsys, "fd3", "--stdio-fd", "3")
    assert found.code == 0
    kept(found)


def test_the_same_run_without_errors_and_with_publish_shows_no_words_of_the_system(
    tmp_path: Path, capsys: Captured
) -> None:
    found = faulty(tmp_path, capsys, "error", "--publish")
    assert found.code == 2
    assert found.folder is not None
    for path in found.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"database is locked" not in data, path
            assert b"faulty_system.py" not in data, path
