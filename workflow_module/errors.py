"""What workflow code can catch, and what tells its author that a value cannot be stored."""

from __future__ import annotations


class Cancelled(BaseException):
    """Raised at the wait of a workflow that is being cancelled, so that `finally` blocks run.

    A `BaseException`, as asyncio's: `except Exception` does not swallow it.
    """


class ChildError(Exception):
    """A child workflow did not return a result. Catch it for both kinds of ending."""

    def __init__(self, workflow_id: int, workflow_type: str, error: str) -> None:
        super().__init__(workflow_id, workflow_type, error)
        self.workflow_id = workflow_id
        """The id of the child."""
        self.workflow_type = workflow_type
        """The name of the child's workflow."""
        self.error = error
        """The child's traceback or reason, as text."""

    def __str__(self) -> str:
        return f"workflow {self.workflow_id} ({self.workflow_type}): {self.error}"


class ChildFailed(ChildError):
    """The child's code raised, and the child is parked."""


class ChildCancelled(ChildError):
    """The child was cancelled."""


class ProcedureFailed(Exception):
    """The last attempt of a `call` failed.

    `error_type` is the class name of the procedure's exception, `error` its text.
    """

    def __init__(self, procedure: str, attempts: int, error_type: str, error: str) -> None:
        super().__init__(procedure, attempts, error_type, error)
        self.procedure = procedure
        """The name of the procedure."""
        self.attempts = attempts
        """How many attempts there were."""
        self.error_type = error_type
        """The class name of what the last attempt raised."""
        self.error = error
        """The text of what the last attempt raised."""

    def __str__(self) -> str:
        return f"{self.procedure} failed after {self.attempts} attempts: {self.error_type}: {self.error}"


class StateError(Exception):
    """A value cannot be stored at a wait without changing what the program means.

    The text names the variable, the line of the wait, and what to write instead.
    """


class StateMismatch(Exception):
    """A stored state does not fit the code that should resume it. The text says what changed."""
