"""Tracebacks as a workflow's author wants them: from the first frame of the author's code on."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

_PACKAGE = str(Path(__file__).parent)


def author_traceback(error: BaseException) -> str:
    """The formatted traceback without the engine's own frames at its beginning."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return storable("".join(traceback.format_exception(type(error), error, trace or error.__traceback__)))


def error_line(text: str) -> str:
    """Of a traceback's text the line that names the error, though its message may have several."""
    lines = text.strip().splitlines()
    last_frame = max((number for number, line in enumerate(lines) if line.startswith('  File "')), default=-1)
    for line in lines[last_frame + 1 :]:
        if not line.startswith("    "):
            return line
    return lines[-1] if lines else "failed"


def error_text(error: BaseException) -> str:
    """What an exception says, whatever it is."""
    try:
        return storable(str(error))
    except Exception as problem:
        return f"its text cannot be had: {type(problem).__name__}"


def storable(text: str) -> str:
    """The same as UTF-8 can write it: an error may quote anything."""
    return text.encode("utf-8", "backslashreplace").decode()


def _is_ours(trace: TracebackType) -> bool:
    filename = trace.tb_frame.f_code.co_filename
    return filename.startswith(_PACKAGE) or "contextlib" in filename
