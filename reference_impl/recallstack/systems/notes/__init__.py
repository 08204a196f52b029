"""Notes search: a folder of Markdown files as memory (recall semantics, section 6).

`Notes` over a `NotesConfig` is all that a host needs; `Switches` holds the mutants. The files are the truth: the
index can be deleted at any time. Source of the rules: `002_1cddd6438b696825.txt`.
"""

from recallstack.systems.notes.chunker import ChunkRule
from recallstack.systems.notes.config import NotesConfig
from recallstack.systems.notes.memory import Notes, Status
from recallstack.systems.notes.prompt import Message, Prompt, Section
from recallstack.systems.notes.recall import Found, Hit
from recallstack.systems.notes.switches import Switches
from recallstack.systems.notes.sync import SyncReport

__all__ = [
    "ChunkRule",
    "Found",
    "Hit",
    "Message",
    "Notes",
    "NotesConfig",
    "Prompt",
    "Section",
    "Status",
    "Switches",
    "SyncReport",
]
