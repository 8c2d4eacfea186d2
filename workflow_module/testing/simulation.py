"""`WorkflowSimulation`: a simulated game with workflows, whose procedures run in simulated time and can be faked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Any, Self, TypeVar

from gamedb.testing import Simulation, SimulationStuck
from workflow_module.codec import encode
from workflow_module.definition import StateView, WorkflowDefinition, procedure_result
from workflow_module.history import Moment
from workflow_module.refusals import UnknownProcedure
from workflow_module.structs import Signal
from workflow_module.surroundings import surroundings
from workflow_module.tables import PendingProcedure, Workflow, WorkflowStatus, WorkflowTimer
from workflow_module.testing.fakes import PAUSE_SECONDS_MAX, Fake, Simulated
from workflow_module.testing.workers import SimulatedWorker
from workflow_module.workflows import ENDED, Workflows

InitT = TypeVar("InitT")


class WorkflowSimulation(Simulation):
    """A `Simulation` of a module that has workflows installed. In tests the fixture `workflow_sim` makes them.

    ```python
    @workflow
    async def egg(ctx: WorkflowContext) -> str:
        await sleep(timedelta(minutes=5))
        return "hard"

    module = Module("kitchen")
    install(module, [egg])
    with WorkflowSimulation(module) as sim:
        breakfast = sim.start(egg, None)
        sim.advance(240)
        sim.crash()
        sim.advance(60)
        print(sim.result(breakfast))  # hard
    ```
    """

    flows: Workflows
    """The workflows of this life of the process."""

    def _opened(self) -> None:
        self.flows = Workflows(self.db)
        if self.lives == 1:
            self._simulated = Simulated(lambda: self.clock.micros() / 1_000_000)
            self.context.run(surroundings.set, self._simulated)
            self._worker = SimulatedWorker(self, self._simulated.fakes)
            self._works = False
        elif self._works:
            self._worker.opened()

    # --- what can be done

    def start(
        self,
        workflow: WorkflowDefinition[InitT, Any],
        init: InitT,
        *,
        entity_id: int | None = None,
        correlation_id: str | None = None,
        signals: Iterable[Signal] = (),
        manual: bool = False,
    ) -> int:
        """Start a workflow and give its id. `manual`: its timers fire by `fire_timer` only."""

        def body() -> int:
            starts = self.flows.start_test if manual else self.flows.start
            return starts(workflow, init, entity_id=entity_id, correlation_id=correlation_id, signals=signals)

        return self.act(body)

    def signal(self, workflow_id: int, message: Signal) -> None:
        """Send a signal."""
        self.act(lambda: self.flows.signal(workflow_id, message))

    def signal_entity(self, entity_id: int, message: Signal) -> int:
        """Send a signal to the live workflows of an entity that know it; how many there were."""
        return self.act(lambda: self.flows.signal_entity(entity_id, message))

    def broadcast(self, message: Signal, key: str | int) -> int:
        """Send a signal to all that subscribed to its class with this key; how many there were."""
        return self.act(lambda: self.flows.broadcast(message, key))

    def cancel(self, workflow_id: int) -> None:
        """Raise `Cancelled` where a workflow waits."""
        self.act(lambda: self.flows.cancel(workflow_id))

    def resume(self, workflow_id: int) -> None:
        """Try the step again at which a workflow failed."""
        self.act(lambda: self.flows.resume(workflow_id))

    def terminate(self, workflow_id: int) -> None:
        """End a workflow at once, without running its code."""
        self.act(lambda: self.flows.terminate(workflow_id))

    def fire_timer(self, workflow_id: int, timer: Any) -> None:
        """Let a timer be due now: its enum member, or its name."""
        self.act(lambda: self.flows.fire_timer(workflow_id, getattr(timer, "value", timer)))

    # --- procedures

    def fake(self, procedure: Callable[..., Any] | str, *outcomes: Any, delay: timedelta | float | None = None) -> Fake:
        """Let something stand in for a procedure from now on, by its function or name.

        An outcome is a value to return, an exception to raise, or a function (sync or async) that gets what the
        procedure would. Of several, each attempt takes the next, and the last one stays. `delay` is in simulated
        time, as are the attempts' timeouts. What comes back lists the attempts in `calls`.

        A call with a queue is taken by a simulated worker, under leases; the outcome `WorkerDies` lets that die.
        """
        name = procedure if isinstance(procedure, str) else self._name(procedure)
        if name not in self.flows.engine.procedures:
            known = ", ".join(sorted(self.flows.engine.procedures)) or "none"
            raise UnknownProcedure(f"no workflow calls a procedure {name!r}; they call: {known}")
        if not outcomes:
            raise TypeError(f"fake({name}) needs an outcome: a value (None, too), an exception, or a function")
        fake = self._simulated.fakes[name] = Fake(outcomes, delay)
        self._work()
        return fake

    def _work(self) -> None:
        """Let the worker look what there is for it now, and from now on."""
        if not self._works:
            self._works = True
            self._worker.opened()
        self._worker.wake()
        self.settle()

    def complete(self, workflow_id: int, procedure: Callable[..., Any] | str, result: Any) -> None:
        """Answer a pending call of a workflow by hand: one that a worker elsewhere would run (`queue=`), say."""
        name = procedure if isinstance(procedure, str) else self._name(procedure)
        calls = [row for row in self.pending(workflow_id) if row.procedure == name]
        if not calls:
            known = ", ".join(row.procedure for row in self.pending(workflow_id)) or "none"
            raise UnknownProcedure(f"workflow {workflow_id} waits for no call of {name!r}; it waits for: {known}")
        engine = self.flows.engine
        text = encode(result, procedure_result(engine.procedure(name)), f"the result of {name}").decode()
        self.act(lambda: self.db.execute("complete", engine.complete_procedure, (calls[0].id, text)))

    def _name(self, procedure: Callable[..., Any]) -> str:
        code = getattr(procedure, "function", procedure)
        for name, known in self.flows.engine.procedures.items():
            if getattr(known, "function", known) is code:
                return name
        return str(getattr(procedure, "__name__", procedure))

    def random_pauses(self, seed: object) -> None:
        """Let attempts take random times, so that they overtake each other. For `explore`."""

        def pause(name: str, key: str) -> float:
            chance = Random(f"{seed}/{name}/{key}")
            return chance.choice((0.0, chance.uniform(0, PAUSE_SECONDS_MAX)))

        self._simulated.pause = None if seed is None else pause
        self._worker.chance = seed

    def pending(self, workflow_id: int) -> list[PendingProcedure]:
        """The calls of a workflow that have not ended, in order."""
        return sorted(self.read(PendingProcedure).where(workflow_id=workflow_id), key=lambda row: row.id)

    # --- looking

    def row(self, workflow_id: int) -> Workflow:
        """The row of a workflow."""
        return self.flows.get(workflow_id)

    def status(self, workflow_id: int) -> WorkflowStatus:
        """Where a workflow is in its life."""
        return self.flows.get(workflow_id).status

    def ended(self, workflow_id: int) -> bool:
        """Whether a workflow has completed, was cancelled, or has failed."""
        return self.flows.get(workflow_id).status in ENDED

    def timers(self, workflow_id: int) -> list[WorkflowTimer]:
        """What a workflow waits for, by deadline."""
        return self.flows.timers(workflow_id)

    def view(self, workflow_id: int) -> StateView:
        """The typed state of a waiting workflow: `.init`, and each stored variable."""
        return self.flows.view(workflow_id)

    def result(self, workflow_id: int) -> Any:
        """The result of a completed workflow. `WorkflowFailed`, `WorkflowCancelled` or `WorkflowPending` otherwise."""
        return self.flows.result(workflow_id)

    def finish(self, workflow_id: int) -> Any:
        """Let time pass until a workflow has ended, then `result`. `SimulationStuck` says where it waits for ever."""

        def has_ended() -> bool:
            return self.ended(workflow_id)

        try:
            self.run_until(has_ended)
        except SimulationStuck as stuck:
            row = self.row(workflow_id)
            where = f"workflow {workflow_id} ({row.workflow_type}) is {row.status.value} at {row.current_step}"
            raise SimulationStuck(f"{where}: {stuck}") from None
        return self.result(workflow_id)

    def history(self, workflow_id: int) -> list[Moment]:
        """What happened to a workflow, with the state after each event."""
        return self.flows.history(workflow_id)

    def at(self, workflow_id: int, number: int) -> Moment:
        """A workflow as it was after its event of this number: 1 is its start, -1 the last."""
        return self.flows.at(workflow_id, number)

    def fresh(self, seed: int | str) -> Self:
        """Another simulation of the same kind, with the same fakes, from the beginning."""
        made = super().fresh(seed)
        for name, fake in self._simulated.fakes.items():
            made._simulated.fakes[name] = Fake(tuple(fake.outcomes), fake.delay_seconds)
        if self._works:
            made._work()
        return made
