"""One named switch for each documented bug and each guard of the context lane."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """All off is the fixed, documented behaviour. Legacy is the first three on.

    Bugs (seed 001). gates_read_live_stamp: the passthrough and fork gates read the live stamp alone, while the
    rebase gate reads the sticky binding. stamped_review_forked: a stamped review goes to the resolver, which
    forks it to a persisted sub-session. tag_anywhere: compaction framing anywhere in a new user message counts.

    Mutants of classification. policy_anywhere: the policy may stand anywhere in the system text.
    policy_drift_matches: its first line is enough. message_count_ignored, role_ignored, tools_ignored: that part
    of the shape is not looked at. evidence_ignored: any client's review passes. identity_from_binding: the
    binding counts as identity evidence too, so unstamped requests reach the resolver. binding_not_sticky: an
    unstamped request unbinds the session. resolver_never_forks: discontinuous shapes stay on the main session.

    Mutants of passthrough. passthrough_reencoded: the body is decoded and encoded again. side_clamped,
    side_settles, side_nudged: reviews are clamped, settle usage, are nudged. side_refs: their messages get refs.

    Mutants of the rebase. framing_ignored, blocks_not_needed, retention_ignored, any_agent_rebases: that
    condition is off. never_rebases: none at all. rebase_keeps_refs, rebase_keeps_blocks, rebase_keeps_fold,
    rebase_keeps_pending: that part of the state survives.

    Mutants of the arithmetic. later_messages_ignored: the estimate is the settled usage alone.
    baseline_unanchored: settled usage counts for a request that does not continue what was settled.
    cached_tokens_ignored: usage without the tokens read from or written to a cache. margin_ignored: 1 in place
    of 1.05. cap_rounded_up: ceiling in place of floor. requested_ignored: the cap is sent even above what was
    requested. no_room_forwarded: a request with no room goes upstream with one token.
    """

    gates_read_live_stamp: bool = False
    stamped_review_forked: bool = False
    tag_anywhere: bool = False

    policy_anywhere: bool = False
    policy_drift_matches: bool = False
    message_count_ignored: bool = False
    role_ignored: bool = False
    tools_ignored: bool = False
    evidence_ignored: bool = False
    identity_from_binding: bool = False
    binding_not_sticky: bool = False
    resolver_never_forks: bool = False

    passthrough_reencoded: bool = False
    side_clamped: bool = False
    side_settles: bool = False
    side_nudged: bool = False
    side_refs: bool = False

    framing_ignored: bool = False
    blocks_not_needed: bool = False
    retention_ignored: bool = False
    any_agent_rebases: bool = False
    never_rebases: bool = False
    rebase_keeps_refs: bool = False
    rebase_keeps_blocks: bool = False
    rebase_keeps_fold: bool = False
    rebase_keeps_pending: bool = False

    later_messages_ignored: bool = False
    baseline_unanchored: bool = False
    cached_tokens_ignored: bool = False
    margin_ignored: bool = False
    cap_rounded_up: bool = False
    requested_ignored: bool = False
    no_room_forwarded: bool = False


NO_SWITCHES = Switches()
"""The fixed behaviour."""
LEGACY = Switches(gates_read_live_stamp=True, stamped_review_forked=True, tag_anywhere=True)
"""Every documented bug at once. A scenario puts back only the one that it is about."""
