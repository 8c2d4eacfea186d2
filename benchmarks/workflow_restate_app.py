"""The service that `benchmarks.workflow_restate` lets Hypercorn serve."""

import restate

counter = restate.VirtualObject("Counter")
steps = restate.Service("Steps")


@counter.handler()
async def add(ctx: restate.ObjectContext, n: int) -> int:
    total = (await ctx.get("total", type_hint=int) or 0) + n
    ctx.set("total", total)
    return total


@steps.handler()
async def ten(ctx: restate.Context, n: int) -> int:
    for _ in range(10):
        n = await ctx.run_typed("add_one", add_one, n=n)
    return n


async def add_one(n: int) -> int:
    return n + 1


app = restate.app([counter, steps])
