"""`python -m recallbench`."""

from recallbench.cli import main

if __name__ == "__main__":
    main()
