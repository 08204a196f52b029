"""One named switch for each documented bug and each guard of a session: on, it puts that fault in its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """All off is the fixed behaviour.

    Documented bugs:
    query_from_visible_messages: the query of a step is the newest visible user message; what is pending is not read.
    prefetch_not_awaited: the request for the query's vector is started and the cache is read on the next line.

    Mutants of `last_user_query`:
    visible_ignored: a message that was rewound still answers. cancel_ignored: no splice withdraws anything.
    removed_count_ignored: only `outcome: canceled` withdraws. turn_end_ignored: pending text outlives its turn.
    any_user_message_ignored: a message that is not on the surface leaves what was pending before it pending.
    oldest_splice: the oldest pending text answers. plugin_text_counts: text that a plugin put in is a query too.

    Mutants of the live step query:
    live_query_ignores_events, live_query_ignores_visible: that number is no part of the fingerprint.
    live_query_survives_reject: a decision other than `enter` clears nothing.
    live_query_from_any_notification: recorded without an explicit new message (the last one again, or a plugin's).
    live_query_unbounded: more than 8 are kept.

    Mutants of the query vector:
    cooldown_zero: a failed query is asked again at once. cooldown_inclusive: blocked at exactly 15,000 ms still.
    no_sharing: every caller sends a request. timer_left: the timer of a wait is not cleared.
    late_result_dropped: a result after the timeout is not cached. late_result_cools_down: a timeout blocks the query.
    cache_unbounded: more than 8 vectors are kept. failed_result_cached: a failure is kept for good, never retried.

    Mutants of the injected block:
    cut_by_utf16: cuts count UTF-16 code units, so that half a character may stay. braces_raw: braces are left as
    they are. budget_ignored: the block is never cut.
    """

    query_from_visible_messages: bool = False
    prefetch_not_awaited: bool = False

    visible_ignored: bool = False
    cancel_ignored: bool = False
    removed_count_ignored: bool = False
    turn_end_ignored: bool = False
    any_user_message_ignored: bool = False
    oldest_splice: bool = False
    plugin_text_counts: bool = False

    live_query_ignores_events: bool = False
    live_query_ignores_visible: bool = False
    live_query_survives_reject: bool = False
    live_query_from_any_notification: bool = False
    live_query_unbounded: bool = False

    cooldown_zero: bool = False
    cooldown_inclusive: bool = False
    no_sharing: bool = False
    timer_left: bool = False
    late_result_dropped: bool = False
    late_result_cools_down: bool = False
    cache_unbounded: bool = False
    failed_result_cached: bool = False

    cut_by_utf16: bool = False
    braces_raw: bool = False
    budget_ignored: bool = False


NO_SWITCHES = Switches()
"""The fixed behaviour."""
