"""Kills a game with SIGKILL at random moments, again and again, and looks at what the file holds each time."""
