"""The types of the game that the tests with the official SDK play: one of each kind, nested and recursive."""

from __future__ import annotations

import enum

from gamedb import Struct, i32, u32


class Color(enum.Enum):
    Red = 1
    Green = 2
    DARK_BLUE = 3


class Point(Struct):
    x: i32
    y: i32


class Path(Struct):
    title: str
    points: list[Point]
    next_stop: Point | None


class Empty(Struct): ...


class Shape(Struct): ...


class Circle(Shape, tag=True):
    center: Point
    radius: float


class Polygon(Shape, tag=True):
    corners: list[Point]


class Nowhere(Shape, tag=True): ...


class Tree(Struct):
    value: u32
    children: list[Tree]


class Expr(Struct): ...


class Number(Expr, tag=True):
    value: float


class Sum(Expr, tag=True):
    left: Number | Sum | Negated | Zero
    right: Number | Sum | Negated | Zero


class Negated(Expr, tag=True):
    inner_expr: Number | Sum | Negated | Zero | None


class Zero(Expr, tag=True): ...
