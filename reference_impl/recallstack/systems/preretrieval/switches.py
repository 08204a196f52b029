"""One named switch for each guard of pre-retrieval: on, it puts a deliberate fault in its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """Mutants. All off is the documented behaviour; a scenario names the one that must fail it.

    once_ignored: mode once asks and injects in every turn. resume_forgets: what the log said before this
    process began is not read. per_turn_repeats_ids: documents injected before come again.
    failure_not_marked_once, failure_not_marked_turn: a failure leaves no mark, so that it is tried again.
    timeout_blocks: no deadline. http_500_raises, malformed_raises: the failure reaches the task.
    min_score_exclusive: a hit at min_score is dropped. min_score_ignored: every hit stays.
    cut_before_filter: hits are cut to top_k first. repeats_kept: a document twice in one answer stays twice.
    max_chars_ignored, context_total_ignored, context_entry_ignored, tool_entry_ignored: that bound is off.
    own_injection_in_context: injected texts are sent back to the knowledge base.
    billed_once: injected tokens are billed in their first round only.
    every_step_retrieves: later steps of a turn ask too.
    """

    once_ignored: bool = False
    resume_forgets: bool = False
    per_turn_repeats_ids: bool = False
    failure_not_marked_once: bool = False
    failure_not_marked_turn: bool = False
    timeout_blocks: bool = False
    http_500_raises: bool = False
    malformed_raises: bool = False
    min_score_exclusive: bool = False
    min_score_ignored: bool = False
    cut_before_filter: bool = False
    repeats_kept: bool = False
    max_chars_ignored: bool = False
    context_total_ignored: bool = False
    context_entry_ignored: bool = False
    tool_entry_ignored: bool = False
    own_injection_in_context: bool = False
    billed_once: bool = False
    every_step_retrieves: bool = False


NO_SWITCHES = Switches()
"""The documented behaviour."""
