"""gamedb: an in-process game database."""
