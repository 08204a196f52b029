"""The consent gate: which chunking rule is in force, and which one waits."""

from __future__ import annotations

from recallstack.systems.notes.chunker import ChunkRule
from recallstack.systems.notes.store import Store
from recallstack.systems.notes.switches import Switches

IN_FORCE, WANTED = "rule", "rule_wanted"
"""Keys of `meta`: signatures of the rule that files are cut by, and of one that waits for consent."""


def settle_rule(store: Store, wanted: ChunkRule | None, switches: Switches) -> tuple[ChunkRule, bool]:
    """The rule in force, and whether another one waits. What is wanted is recorded; nothing is cut.

    wanted: None asks for no change. Raises InputError if this version cannot cut by the rule in force.
    """
    if store.get(IN_FORCE) is None:
        with store.write():
            first = (wanted or ChunkRule()).signature
            store.connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (IN_FORCE, first))
    if wanted is not None and switches.spec_change_recuts and wanted.signature != store.get(IN_FORCE):
        accept_rule(store, wanted)
    in_force, recorded = store.get(IN_FORCE), store.get(WANTED)
    assert in_force is not None
    waiting = recorded if wanted is None else wanted.signature
    if waiting == in_force:
        waiting = None
    if waiting != recorded:
        with store.write():
            if waiting is None:
                store.drop(WANTED)
            else:
                store.put(WANTED, waiting)
    return ChunkRule.of(in_force), waiting is not None


def accept_rule(store: Store, wanted: ChunkRule | None) -> None:
    """Put the wanted rule in force, or the one that waits. Files are cut anew by the next sync, however it ends."""
    with store.write():
        in_force = store.get(IN_FORCE)
        waiting = store.get(WANTED) if wanted is None else wanted.signature
        if waiting is None and (in_force is None or not ChunkRule.knows(in_force)):
            waiting = ChunkRule().signature
        if waiting is not None:
            store.put(IN_FORCE, waiting)
        store.drop(WANTED)
