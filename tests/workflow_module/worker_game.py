"""A game that leaves its thinking to workers. The world outside is a directory: what is attempted, and what may end."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from gamedb import Module, PrimaryKey, ReducerContext, Row
from workflow_module import Backoff, StepContext, WorkflowContext, call, install, workflow

module = Module("oracle")

WORLD = Path(os.environ.get("ORACLE_WORLD", "."))


@module.table(public=True)
class Answer(Row):
    question: PrimaryKey[str]
    text: str


@module.reducer(private=True)
def thinking(ctx: ReducerContext, question: str, attempt: int) -> None:
    ctx.db[Answer].upsert(Answer(question=question, text=f"thinking, attempt {attempt}"))


@module.procedure(queue="llm")
async def think(ctx: StepContext, question: str) -> str:
    await ctx.call(thinking, question, ctx.attempt)
    with (WORLD / "attempts").open("a") as file:
        file.write(f"{os.getpid()} {ctx.step_key} {ctx.attempt_key} {ctx.attempt}\n")
    while not (WORLD / f"answer to {question}").exists():
        await asyncio.sleep(0.01)
    return f"{question}: 42"


@workflow
async def oracle(ctx: WorkflowContext, init: str) -> str:
    answer = await call(think, init, attempts=5, backoff=Backoff(timedelta(milliseconds=50)))
    ctx.db[Answer].upsert(Answer(question=init, text=answer))
    return answer


engine = install(module, [oracle])


@module.reducer
def ask(ctx: ReducerContext, question: str) -> None:
    engine.start(ctx, oracle, question)
