"""Personal memory with candidates, lifecycle and a vector table ("memory-v2", recall semantics, section 7).

`open_stores` (module `services`) opens the database and the vector table, `Portal` (module `portal`) is the chat side,
`Admin` (module `admin`) the other, `closed_loop` (module `loop`) the check before anything is switched to active.
`Switches` holds the documented bugs and the mutants. Source of the rules: `003_fceea26e2639b8f2.txt`.

This module imports no database library: the modules that need one do.
"""

from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.switches import LEGACY, Switches

__all__ = ["LEGACY", "Modes", "Switches"]
