"""Moments, durations, and when a schedule fires: the column types, and microseconds as the database counts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gamedb.columns.base import ColumnType, shown
from gamedb.errors import ColumnError
from gamedb.types import I64

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
DURATION_MAX: Final = timedelta(microseconds=I64.high)
DURATION_MIN: Final = timedelta(microseconds=I64.low)


def to_micros(moment: datetime) -> int:
    """Microseconds since the Unix epoch of an aware `datetime`."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The UTC `datetime` at so many microseconds since the Unix epoch."""
    return EPOCH + _MICROSECOND * micros  # a third faster than to make a timedelta of them


def micros_of(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


class TimestampType(ColumnType):
    name = "datetime"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_datetime"], scope["_UTC"] = type, datetime, UTC
        return f"(_type({var}) is _datetime and {var}.tzinfo is _UTC and not {var}.fold)"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, datetime):
            self.refuse(value, path)
        if value.utcoffset() is None:
            self.refuse(value, path, ": it has no time zone; use datetime.now(UTC) or .replace(tzinfo=UTC)")
        if type(value) is datetime and value.tzinfo is UTC and not value.fold:
            return value
        try:
            return from_micros(to_micros(value))
        except OverflowError:
            self.refuse(value, path, ": it is outside the years 1 to 9999 of UTC")

    def to_json(self, value: Any) -> Any:
        return value.isoformat().replace("+00:00", "Z")

    def from_json(self, value: Any, path: str) -> Any:
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.refuse(value, path, ": times are written like 2026-11-29T12:00:00Z")
        return self.coerce(moment, path)


class DurationType(ColumnType):
    name = "timedelta"
    orderable = True

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        scope["_type"], scope["_timedelta"] = type, timedelta
        scope["_LONGEST"], scope["_SHORTEST"] = DURATION_MAX, DURATION_MIN
        return f"(_type({var}) is _timedelta and _SHORTEST <= {var} <= _LONGEST)"

    def coerce(self, value: Any, path: str) -> Any:
        if not isinstance(value, timedelta):
            self.refuse(value, path)
        if not DURATION_MIN <= value <= DURATION_MAX:
            raise ColumnError(f"{path}: {shown(value)} does not fit 64 bits of microseconds")
        return timedelta(microseconds=micros_of(value)) if type(value) is not timedelta else value

    def to_json(self, value: Any) -> Any:
        return micros_of(value)

    def from_json(self, value: Any, path: str) -> Any:
        if type(value) is not int or not I64.low <= value <= I64.high:
            self.refuse(value, path, ": durations are written as whole microseconds")
        return timedelta(microseconds=value)


class ScheduleAtType(ColumnType):
    name = "ScheduleAt"
    keyable = False
    _time = TimestampType()
    _interval = DurationType()

    def fast(self, var: str, scope: dict[str, Any]) -> str:
        time, interval = self._time.fast(var, scope), self._interval.fast(var, scope)
        scope["_NO_TIME"] = timedelta(0)
        return f"({time} or ({interval} and {var} > _NO_TIME))"

    def coerce(self, value: Any, path: str) -> Any:
        if isinstance(value, datetime):
            return self._time.coerce(value, path)
        if not isinstance(value, timedelta):
            self.refuse(value, path, ": a datetime fires once, a timedelta again and again")
        if value <= timedelta(0):
            self.refuse(value, path, ": an interval must be positive; to fire at once, use ctx.now")
        return self._interval.coerce(value, path)

    def to_json(self, value: Any) -> Any:
        return (self._time if isinstance(value, datetime) else self._interval).to_json(value)

    def from_json(self, value: Any, path: str) -> Any:
        part = self._interval if isinstance(value, int) else self._time
        return self.coerce(part.from_json(value, path), path)
