"""The world outside of the database, for the examples: a post office that fails at times.

Like a good mail service it takes a key with each letter, and a letter whose key it has seen is not sent again. That is
what makes it safe to call at least once.
"""

from __future__ import annotations


class PostOffice:
    """Letters by key, in the order in which they came."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}
        self.requests: list[str] = []
        """The key of every request, repeats and failures as well."""
        self.closed_for = 0
        """How many requests from now on fail."""

    def send(self, key: str, text: str) -> None:
        """Send a letter, once for each key."""
        self.requests.append(key)
        if self.closed_for > 0:
            self.closed_for -= 1
            raise ConnectionError("the post office is closed")
        self.letters.setdefault(key, text)


post = PostOffice()
