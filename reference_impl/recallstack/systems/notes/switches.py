"""One named switch for each guard of notes search: on, it puts a deliberate fault in its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """Mutants. All off is the documented behaviour; a scenario names the one that must fail it.

    Index. spec_change_recuts: a changed chunking rule is in force at once. everything_recut: every sync cuts every
    file. size_ignored: an equal mtime means an unchanged file. mtime_ignored: an equal size does. deleted_kept:
    deleted files stay. rename_keeps_old_path: a file with the mtime and the size of one that is gone is taken for
    it, and stays under its old name. no_rescan: only the first sync takes place by itself.
    Sensitivity. group_sees_personal, guest_sees_personal: the channel gets personal rows too. unknown_is_owner: a
    session that no key names gets everything. looser_of_two_keys: a session under two keys gets the looser channel.
    no_entries_is_no_map: an empty session map counts as none. broken_map_is_no_map: so does one that cannot be
    read. other_file_is_public: a file whose name says nothing is public. cut_before_filter: top-k comes before
    sensitivity.
    Recall. dimension_mismatch_computes: a vector of another dimension is padded or cut, and ranks.
    model_change_computes: vectors of another model rank if their dimension is the same. instruction_left_in_place:
    another model's instruction is prefixed although none is set. instruction_on_documents: the instruction goes to
    documents too. instruction_in_keywords: it is searched for as keywords. weights_off: every source weighs 1.
    carryover_by_name: under `carryover/` the file name still counts. pool_is_limit: each list is cut to the limit
    before fusion. raw_fts_query: the query text is query syntax.
    Auto-recall. recall_enters_transcript: what was recalled is appended to the messages. budget_ignored: no bound
    on characters. items_ignored: no bound on items.
    """

    spec_change_recuts: bool = False
    everything_recut: bool = False
    size_ignored: bool = False
    mtime_ignored: bool = False
    deleted_kept: bool = False
    rename_keeps_old_path: bool = False
    no_rescan: bool = False
    group_sees_personal: bool = False
    guest_sees_personal: bool = False
    unknown_is_owner: bool = False
    looser_of_two_keys: bool = False
    no_entries_is_no_map: bool = False
    broken_map_is_no_map: bool = False
    other_file_is_public: bool = False
    cut_before_filter: bool = False
    dimension_mismatch_computes: bool = False
    model_change_computes: bool = False
    instruction_left_in_place: bool = False
    instruction_on_documents: bool = False
    instruction_in_keywords: bool = False
    weights_off: bool = False
    carryover_by_name: bool = False
    pool_is_limit: bool = False
    raw_fts_query: bool = False
    recall_enters_transcript: bool = False
    budget_ignored: bool = False
    items_ignored: bool = False


NO_SWITCHES = Switches()
"""The documented behaviour."""
