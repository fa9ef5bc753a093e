"""The language of claims: predicates that give a truth and its margin, quantities that give numbers.

A predicate such as `v('table1','Baseline','PPL','LR') < 2 * v('table1','AGG','PPL','LR')` looks like Python
and is parsed by Python's own parser, but walked here over a whitelist: numbers, strings, tuples, `+ - * /`,
comparisons, `and`, `or`, generator expressions, and the functions v, abs, min, max, sum, all, any, tuple.
Everything else is refused. Nothing is executed.

The **slack** of a truth is signed: positive when it holds with room, negative when it fails, in the unit of
the numbers compared. a < b has b - a; a == b has -|a - b|; `and`, chains and `all` have the least slack of
their parts, `or` and `any` the greatest. A slack of 0 is a tie: whether it holds depends on strictness, so
the truth is kept beside it. A slack that rounding alone can make is 0, so that `abs(1.05 - 1) <= 0.05` holds.

A **quantity** is a number, or a tuple of numbers that are compared with the same bound one by one: `(a / b, c / d)`,
`tuple(v('table1',r,'PPL','LR') / v('table1','Baseline','PPL','LR') for r in ('A','B'))`, or a sum of such tuples.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from raretok.core.errors import UserError
from raretok.reporting.statistics.intervals import ROUNDING

MAX_CHARACTERS = 4000
MAX_DEPTH = 40
MAX_STEPS = 20_000  # nodes visited, over all rounds of the generators

Lookup = Callable[..., float]


@dataclass(frozen=True)
class Truth:
    """Whether a predicate holds, and its signed slack. `parts`: of a conjunction, the truths that must all hold."""

    holds: bool
    slack: float
    parts: tuple["Truth", ...] = field(default=(), compare=False, repr=False)


class Missing(Exception):
    """A number that the predicate needs was not measured; the message says which.

    asked: (experiment, method) of the trainings that were looked up until then, where that is known.
    """

    asked: tuple[tuple[str, str], ...] = ()


class Undefined(Missing):
    """All was measured, but the predicate has no truth: it holds inf / inf, say, of runs whose perplexity overflows."""


def evaluate(predicate: str, lookup: Lookup) -> Truth:
    """Evaluate `predicate`; `lookup(table, row, column, group)` gives a number or raises Missing.

    Raises UserError for a predicate outside the language, Undefined where its numbers have no truth.
    """
    walker = _Walker(predicate, lookup)
    result = walker.result(lambda: walker.visit(_parsed(predicate), {}, 0))
    if not isinstance(result, Truth):
        raise walker.refuse("its value is not a truth")
    return result


def quantities(expression: str) -> list[Callable[[Lookup], float]]:
    """The numbers of a quantity, each a function of a lookup (see `evaluate`); raises UserError and Undefined alike."""
    splitter = _Walker(expression, lambda *key: 1.0)
    parts = splitter.result(lambda: list(splitter.split(_parsed(expression), {}, 0)))

    def number_of(node: ast.expr, names: dict) -> Callable[[Lookup], float]:
        def number(lookup: Lookup) -> float:
            walker = _Walker(expression, lookup)
            return walker.result(lambda: walker.number(node, names, 0))

        return number

    return [number_of(*part) for part in parts]


def _parsed(expression: str) -> ast.expr:
    if len(expression) > MAX_CHARACTERS:
        raise UserError(f"A claim's predicate has {len(expression)} characters, more than {MAX_CHARACTERS}.")
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(f"A claim's predicate cannot be parsed: {_short(expression)}.") from None


def difference(a: float, b: float) -> float:
    """a - b, and exactly 0 for two numbers that are equal but for rounding, or equal infinities.

    Raises Undefined where one is NaN.
    """
    return 0.0 if math.isclose(a, b, rel_tol=ROUNDING) else known(float(a - b))


def greater(a: float, b: float) -> Truth:
    """a > b, by more than rounding."""
    slack = difference(a, b)
    return Truth(slack > 0, slack)


def at_least(a: float, b: float) -> Truth:
    """a >= b, or short of it by no more than rounding."""
    slack = difference(a, b)
    return Truth(slack >= 0, slack)


def equal(a: float, b: float) -> Truth:
    """a == b, but for rounding."""
    slack = -abs(difference(a, b))
    return Truth(slack == 0, slack)


def all_of(truths) -> Truth:
    """All hold; the least slack, and all parts. True with infinite slack when there are none."""
    truths = list(truths)
    parts = tuple(part for truth in truths for part in truth.parts or (truth,))
    return Truth(all(t.holds for t in truths), min((t.slack for t in truths), default=math.inf), parts)


def any_of(truths) -> Truth:
    """One holds; the greatest slack. False with infinitely negative slack when there are none."""
    truths = list(truths)
    return Truth(any(t.holds for t in truths), max((t.slack for t in truths), default=-math.inf))


COMPARISONS = {
    ast.Lt: lambda a, b: greater(b, a),
    ast.LtE: lambda a, b: at_least(b, a),
    ast.Gt: greater,
    ast.GtE: at_least,
    ast.Eq: equal,
}
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class _Walker:
    """Walks one parsed predicate; `names` are the loop variables in scope."""

    def __init__(self, predicate: str, lookup: Lookup):
        self.predicate = predicate
        self.lookup = lookup
        self.steps = 0

    def refuse(self, why: str) -> UserError:
        return UserError(f"A claim's predicate is refused, {why}: {_short(self.predicate)}.")

    def result(self, walk: Callable):
        """What a walk gives; a division by zero has no truth."""
        try:
            return walk()
        except (ZeroDivisionError, OverflowError):
            raise Undefined("a division by zero or a number beyond all bounds") from None

    def visit(self, node: ast.expr, names: dict, depth: int):
        self.steps += 1
        if depth > MAX_DEPTH:
            raise self.refuse(f"it is nested deeper than {MAX_DEPTH}")
        if self.steps > MAX_STEPS:
            raise self.refuse(f"it takes more than {MAX_STEPS} steps")
        if type(node) not in VISITS:
            raise self.refuse(f"{type(node).__name__} is not allowed")
        return VISITS[type(node)](self, node, names, depth + 1)

    def number(self, node: ast.expr, names: dict, depth: int) -> float:
        value = self.visit(node, names, depth)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse("a number is needed where something else stands")
        return value

    def truth(self, node: ast.expr, names: dict, depth: int) -> Truth:
        value = self.visit(node, names, depth)
        if not isinstance(value, Truth):
            raise self.refuse("a comparison is needed where something else stands")
        return value

    def constant(self, node, names, depth):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float | str):
            raise self.refuse(f"the constant {node.value!r} is not allowed")
        return node.value

    def name(self, node, names, depth):
        if node.id not in names:
            raise self.refuse(f"the name '{node.id}' is not known")
        return names[node.id]

    def parts(self, node, names, depth):
        return tuple(self.visit(part, names, depth) for part in node.elts)

    def negate(self, node, names, depth):
        if not isinstance(node.op, ast.USub):
            raise self.refuse(f"{type(node.op).__name__} is not allowed")
        return -self.number(node.operand, names, depth)

    def arithmetic(self, node, names, depth):
        if isinstance(node.op, ast.Mod):
            return self.format(node, names, depth)
        if type(node.op) not in ARITHMETIC:
            raise self.refuse(f"{type(node.op).__name__} is not allowed")
        left, right = self.visit(node.left, names, depth), self.visit(node.right, names, depth)
        if isinstance(node.op, ast.Add) and type(left) is tuple and type(right) is tuple:
            return left + right
        for value in (left, right):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.refuse("arithmetic is for numbers")
        return known(ARITHMETIC[type(node.op)](left, right))

    def format(self, node, names, depth):
        """'example%d' % k, with nothing but plain %d and %s: a width could ask for a string of any length."""
        text, value = self.visit(node.left, names, depth), self.visit(node.right, names, depth)
        if not isinstance(text, str) or re.findall("%.?", text) not in (["%d"], ["%s"]):
            raise self.refuse("% formats one plain %d or %s of a string")
        if not isinstance(value, int | str) or ("%d" in text and isinstance(value, str)):
            raise self.refuse("% formats a whole number or a string")
        return text % value

    def connect(self, node, names, depth):
        truths = [self.truth(part, names, depth) for part in node.values]
        return all_of(truths) if isinstance(node.op, ast.And) else any_of(truths)

    def compare(self, node, names, depth):
        values = [self.number(part, names, depth) for part in (node.left, *node.comparators)]
        truths = []
        for sign, left, right in zip(node.ops, values[:-1], values[1:], strict=True):
            if type(sign) not in COMPARISONS:
                raise self.refuse(f"{type(sign).__name__} is not allowed")
            truths.append(COMPARISONS[type(sign)](left, right))
        return all_of(truths)

    def call(self, node, names, depth):
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.refuse("only plain calls of v, abs, min, max, sum, all, any and tuple are allowed")
        name = node.func.id
        if name == "v":
            return self.look_up([self.visit(part, names, depth) for part in node.args])
        if name == "abs" and len(node.args) == 1:
            return abs(self.number(node.args[0], names, depth))
        if name not in ("min", "max", "sum", "all", "any", "tuple") or not node.args:
            raise self.refuse(f"the call of '{name}' is not allowed")
        single = len(node.args) == 1
        if not single and name not in ("min", "max"):
            raise self.refuse(f"'{name}' takes one argument")
        values = (
            self.items(node.args[0], names, depth)
            if single
            else tuple(self.visit(part, names, depth) for part in node.args)
        )
        return self.fold(name, values)

    def fold(self, name: str, values: tuple):
        if name == "tuple":
            return values
        if name in ("all", "any"):
            if not all(isinstance(value, Truth) for value in values):
                raise self.refuse(f"'{name}' is over comparisons")
            return all_of(values) if name == "all" else any_of(values)
        if not all(isinstance(value, int | float) for value in values) or (name != "sum" and not values):
            raise self.refuse(f"'{name}' is over numbers")
        return known({"min": min, "max": max, "sum": sum}[name](values))

    def items(self, node, names, depth) -> tuple:
        if isinstance(node, ast.GeneratorExp):
            return tuple(self.generate(node, names, depth))
        value = self.visit(node, names, depth)
        if type(value) is not tuple:
            raise self.refuse("a tuple or a generator is needed where something else stands")
        return value

    def generate(self, node, names, depth) -> Iterator:
        return (self.visit(node.elt, bound, depth) for bound in self.bind(node.generators, names, depth))

    def bind(self, loops, names, depth) -> Iterator[dict]:
        """The names of every round of nested loops."""
        if not loops:
            yield names
            return
        loop = loops[0]
        if loop.ifs or loop.is_async or not isinstance(loop.target, ast.Name):
            raise self.refuse("a generator is `for NAME in TUPLE`, without conditions")
        for value in self.items(loop.iter, names, depth):
            yield from self.bind(loops[1:], names | {loop.target.id: value}, depth)

    def split(self, node, names, depth) -> Iterator[tuple[ast.expr, dict]]:
        """The numbers of a quantity, unevaluated, each with the loop variables in scope."""
        if isinstance(node, ast.Tuple):
            for part in node.elts:
                yield from self.split(part, names, depth + 1)
        elif _is_tuple(node) and isinstance(node, ast.BinOp):
            yield from self.split(node.left, names, depth + 1)
            yield from self.split(node.right, names, depth + 1)
        elif _is_tuple(node):
            for bound in self.bind(node.args[0].generators, names, depth + 1):
                yield node.args[0].elt, bound
        else:
            yield node, names

    def look_up(self, values: list) -> float:
        if not 3 <= len(values) <= 4 or not all(isinstance(value, str) for value in values):
            raise self.refuse("v takes the names of table, row, column and, where there is one, group")
        return known(float(self.lookup(*values)))


# A generator stands only as the one argument of a function, which asks for its items itself.
VISITS = {
    ast.Constant: _Walker.constant,
    ast.Name: _Walker.name,
    ast.Tuple: _Walker.parts,
    ast.UnaryOp: _Walker.negate,
    ast.BinOp: _Walker.arithmetic,
    ast.BoolOp: _Walker.connect,
    ast.Compare: _Walker.compare,
    ast.Call: _Walker.call,
}


def _is_tuple(node: ast.expr) -> bool:
    """Whether an expression is `(...)`, `tuple(... for ...)` or a sum of these."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _is_tuple(node.left) and _is_tuple(node.right)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tuple"
    return isinstance(node, ast.Tuple) or (
        called and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)
    )


def known(value: float) -> float:
    """`value`; raises Undefined for NaN, which `min` and `max` would take or leave by where it stands."""
    if math.isnan(value):
        raise Undefined("a number is not defined, such as a ratio of infinite ones")
    return value


def _short(predicate: str) -> str:
    return predicate if len(predicate) <= 120 else f"{predicate[:117]}..."
