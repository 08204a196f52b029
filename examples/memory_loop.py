"""The closed loop of memory-v2: save, candidate, promote, new session, recall, injected. Run: python memory_loop.py

With an address of a PostgreSQL database that has pgvector (postgresql+psycopg://…) it runs there; without one, in an
SQLite file of a temporary folder.
"""

from __future__ import annotations

import sys
import tempfile

from recallstack.errors import InputError
from recallstack.systems.memory.admin import Admin
from recallstack.systems.memory.errors import StoreError
from recallstack.systems.memory.model import NewMemory
from recallstack.systems.memory.modes import Modes
from recallstack.systems.memory.portal import Portal
from recallstack.systems.memory.services import Settings, open_stores


def main(url: str) -> None:
    database, vectors = open_stores(url)
    modes = Modes(candidates=True, injection="canary", injection_users=frozenset({"ann"}))
    portal = Portal(database, vectors, settings=Settings(modes=modes))
    print("start:   ", portal.start().health)
    saved = portal.save_candidates("ann", "monday", [NewMemory(content="The spare key hangs behind the boiler.")])
    print("save:    ", len(saved.ids), "candidate, kept in the database:", saved.durable)

    stores = open_stores(url)  # the admin side is another process in real life
    admin = Admin(*stores)
    waiting = [one for one in admin.candidates("ann") if one.id in saved.ids]
    if not waiting:
        raise InputError(f"{database.label}: the candidate is decided already; run it on an empty database")
    candidate = waiting[0]
    print("list:    ", candidate.content)
    print("promote: ", len(admin.promote(candidate.id, caller="reviewer").ids), "memory")

    question = "Where does the spare key hang?"
    turn = portal.prepare("ann", "tuesday", question)
    print("recall:  ", len(turn.recalled), "memory in a new session;", len(turn.injected), "injected")
    print(turn.prompt)
    other = portal.prepare("bob", "tuesday", question)
    print("bob:     ", len(other.recalled), "memories; his prompt is his message alone:", other.prompt == question)
    portal.close()
    for store in stores:
        store.close()


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1:
            main(sys.argv[1])
        else:
            with tempfile.TemporaryDirectory() as folder:
                main(f"sqlite:///{folder}/memory.db")
    except (InputError, StoreError) as error:
        print(f"memory_loop: {error}", file=sys.stderr)
        sys.exit(2)
