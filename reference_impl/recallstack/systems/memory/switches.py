"""One named switch for each documented bug and each guard of the memory system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """All off is the fixed, documented behaviour. Legacy is the first seven on (seed 003).

    Bugs. schema_not_ensured: the candidate store is made without its table. worker_switch_only: forget, expire and
    the worker look at their own switch alone, never at the rollout. backfill_from_zero: in place of an upsert by
    user and session, a limited batch of all rows from the oldest on. extraction_reads_orchestrated: extraction
    reads the session's text as the agent got it. empty_extraction_falls_back: an empty extraction counts as none.
    questions_are_facts: questions, requests and to-dos are kept. vector_only: recall is the vector top-k alone.

    Mutants of start. ddl_failure_stops_chat, ddl_failure_starts_admin: the wrong side stops, or starts.

    Mutants of rollout. feature_switch_ignored: forget and expire do not look at their own switch.
    canary_allows_everyone: the list of users is not read. canary_runs_global: a call without a user passes in
    canary. active_needs_a_user: a global task is refused in active. timer_when_off: the worker's timer starts with
    the rollout off. writes_need_rollout: write, compact and promote ask the rollout too. active_without_loop:
    active needs no closed loop. rollback_keeps_modes: a rollback leaves the modes. rollback_drops_table: it drops
    the candidates.

    Mutants of writing. sync_skipped: nothing is upserted before a write returns. compact_not_synced: only write
    and promote upsert. promotion_syncs_caller: the caller's rows are upserted, not those of the promoted user.
    debt_not_recorded: a vector table that fails leaves no trace. vector_failure_fails_write: it makes the write
    fail. promotion_not_atomic: the candidate is marked before its memory is there, in another transaction.
    bounded_unbounded: candidates without a table grow without end.

    Mutants of extraction. null_extraction_is_empty: no extraction means nothing to save. failed_runs_count:
    messages of runs that did not succeed are read. other_sessions_count, other_users_count: so are those of other
    sessions, of other users. lookup_failure_raises: a failed look-up fails the call. fallback_keeps_context: the
    visible session is read with what was injected into it. visible_session_first: it comes before the originals.

    Mutants of recall. no_recent: only vector hits are candidates. no_ngrams: nothing is reranked.
    characters_not_ngrams: single characters count. recent_first_without_overlap: recent rows lead where no word is
    shared. ties_by_recency: equal shares are ordered by recency. pool_unbounded: every row is a candidate.
    limit_ignored: the whole pool comes back. other_users_recalled: rows of every user. inactive_recalled: archived
    and forgotten rows too. shadow_injects: a recall in shadow mode is injected.
    """

    schema_not_ensured: bool = False
    worker_switch_only: bool = False
    backfill_from_zero: bool = False
    extraction_reads_orchestrated: bool = False
    empty_extraction_falls_back: bool = False
    questions_are_facts: bool = False
    vector_only: bool = False

    ddl_failure_stops_chat: bool = False
    ddl_failure_starts_admin: bool = False

    feature_switch_ignored: bool = False
    canary_allows_everyone: bool = False
    canary_runs_global: bool = False
    active_needs_a_user: bool = False
    timer_when_off: bool = False
    writes_need_rollout: bool = False
    active_without_loop: bool = False
    rollback_keeps_modes: bool = False
    rollback_drops_table: bool = False

    sync_skipped: bool = False
    compact_not_synced: bool = False
    promotion_syncs_caller: bool = False
    debt_not_recorded: bool = False
    vector_failure_fails_write: bool = False
    promotion_not_atomic: bool = False
    bounded_unbounded: bool = False

    null_extraction_is_empty: bool = False
    failed_runs_count: bool = False
    other_sessions_count: bool = False
    other_users_count: bool = False
    lookup_failure_raises: bool = False
    fallback_keeps_context: bool = False
    visible_session_first: bool = False

    no_recent: bool = False
    no_ngrams: bool = False
    characters_not_ngrams: bool = False
    recent_first_without_overlap: bool = False
    ties_by_recency: bool = False
    pool_unbounded: bool = False
    limit_ignored: bool = False
    other_users_recalled: bool = False
    inactive_recalled: bool = False
    shadow_injects: bool = False


NO_SWITCHES = Switches()
"""The fixed behaviour."""
LEGACY = Switches(
    schema_not_ensured=True,
    worker_switch_only=True,
    backfill_from_zero=True,
    extraction_reads_orchestrated=True,
    empty_extraction_falls_back=True,
    questions_are_facts=True,
    vector_only=True,
)
"""Every documented bug at once. A scenario puts back only the one that it is about."""
