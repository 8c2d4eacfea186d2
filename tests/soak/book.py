"""What a giver knows of its gifts: which are confirmed, and what its ledger in the game may say."""

from __future__ import annotations

from tests.soak.game import digest_after


class Book:
    """Gifts in order. Of those that are not confirmed, any number from the first on may have happened, or come late."""

    def __init__(self) -> None:
        self.confirmed = 0
        """The last gift of which the server has said that it is done."""
        self._number = 0
        self._digest = 0
        self._possible: dict[int, set[int]] = {0: {0}}

    def next(self, to: int, gold: int) -> int:
        """The number of one more gift."""
        self._number += 1
        self._digest = digest_after(self._digest, self._number, to, gold)
        self._possible.setdefault(self._number, set()).add(self._digest)
        return self._number

    def confirm(self, number: int) -> None:
        """The server has said that it is done, and on disk."""
        self.confirmed = max(self.confirmed, number)

    def look(self, number: int, digest: int) -> str | None:
        """Go on from what the ledger says; gives what is wrong with that."""
        if number < self.confirmed:
            return f"gift {self.confirmed} was confirmed, and the ledger ends at {number}"
        if digest not in self._possible.get(number, ()):
            return f"the ledger ends at {number} with gifts that nobody made"
        self._number, self._digest = number, digest
        self._possible = {n: found for n, found in self._possible.items() if n > number} | {number: {digest}}
        return None
