"""Prints the module definitions of the game, version 9 and then 10, one a line."""

from __future__ import annotations

from gamedb.codegen.module_def import module_def, schema_json
from gamedb.wire.sats_json import dumps
from tests.sdk_game.game import module

if __name__ == "__main__":
    resolved = module.resolve()
    print(dumps({"V9": schema_json(resolved, 9)}).decode())
    print(dumps(module_def(resolved)).decode())
