"""`python -m gamedb`: the same as the command `gamedb`."""

from gamedb.cli import main

main()
