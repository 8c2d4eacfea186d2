"""What the engine answers to a call that it cannot take. Reducer errors: the caller sees the text, nothing changed."""

from __future__ import annotations

from gamedb import ReducerError


class WorkflowError(ReducerError):
    """Base of what the engine refuses."""


class UnknownWorkflow(WorkflowError):
    """No workflow has this id, or no installed workflow has this name."""


class WorkflowFinished(WorkflowError):
    """The workflow has ended, and can neither get signals nor be cancelled."""


class UnknownSignal(WorkflowError):
    """The workflow's code knows no signal of this name."""


class UnknownTimer(WorkflowError):
    """The workflow does not wait for a timer of this name."""


class UnknownProcedure(WorkflowError):
    """No pending procedure has this id: it ended, was cancelled, or never was."""


class BadLease(WorkflowError):
    """A lease that cannot be had: too long, or for nobody."""


class BadPayload(WorkflowError):
    """An init, payload or result that does not fit its type; the text has the JSON path."""


class NotFailed(WorkflowError):
    """Only a failed workflow can be resumed."""


class WorkflowExists(WorkflowError):
    """A run with this correlation id exists, and cannot be joined."""
