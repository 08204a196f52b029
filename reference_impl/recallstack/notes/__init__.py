"""Notes search: a folder of Markdown files as memory (recall semantics, section 6).

`Notes` over a `NotesConfig` is all that a host needs; `Switches` holds the mutants. The files are the truth: the
index can be deleted at any time. Source of the rules: `002_1cddd6438b696825.txt`.
"""

from recallstack.notes.chunker import ChunkRule
from recallstack.notes.config import NotesConfig
from recallstack.notes.memory import Notes, Status
from recallstack.notes.prompt import Message, Prompt, Section
from recallstack.notes.recall import Found, Hit
from recallstack.notes.switches import Switches
from recallstack.notes.sync import SyncReport

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
