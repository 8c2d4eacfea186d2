"""The two clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from gamedb import ManualClock, SystemClock
from gamedb.columns import from_micros, to_micros


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock()
    assert clock.now == datetime(2026, 1, 1, tzinfo=UTC)
    assert clock.micros() == to_micros(clock.now)
    clock.advance(1.5)
    clock.advance(timedelta(microseconds=1))
    assert clock.now == datetime(2026, 1, 1, 0, 0, 1, 500001, tzinfo=UTC)
    clock.set(datetime(2020, 1, 1, tzinfo=UTC))
    assert clock.now.year == 2020


def test_advance_does_not_go_backwards() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match=r"advance\(-1\) would go backwards; use set\(\)"):
        clock.advance(-1)
    assert clock.now == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(TypeError, match="offset-naive"):
        ManualClock(datetime(2026, 1, 1))
    with pytest.raises(TypeError, match="offset-naive"):
        ManualClock().set(datetime(2026, 1, 1))


def test_those_who_wait_are_told_of_each_move() -> None:
    clock = ManualClock()
    moves: list[str] = []
    off = clock.on_change(lambda: moves.append("moved"))
    clock.advance(1)
    clock.set(clock.now)
    off()
    clock.advance(1)
    assert moves == ["moved", "moved"]
    assert clock.wait_seconds(clock.micros()) == 0.0
    assert clock.wait_seconds(clock.micros() + 1) is None


def test_the_system_clock_is_the_time_of_the_machine() -> None:
    clock = SystemClock()
    assert abs(clock.micros() - time.time() * 1e6) < 1e6
    assert clock.wait_seconds(0) == 0.0
    assert 0 < (clock.wait_seconds(clock.micros() + 5_000_000) or 0) <= 5
    assert clock.wait_seconds(clock.micros() + 10**12) == 60.0
    clock.on_change(lambda: None)()


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59)])
def test_times_and_microseconds_convert_exactly(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert from_micros(to_micros(aware)) == aware
