"""Mutation operators on Python's syntax tree, and the places of a source file where they apply."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import CodeType
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARISONS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: Final[Mapping[type[ast.operator], type[ast.operator]]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_LOG_METHODS: Final = frozenset(("debug", "info", "warning", "error", "exception", "critical", "log"))
# Keyword arguments that hold text for people, or that change nothing as long as the code is correct.
_TEXTS: Final = frozenset(
    ("help", "description", "documentation", "metavar", "message", "strict", "encoding")
)
_TYPE_CALLS: Final = frozenset(("cast", "TypeVar", "NewType", "ParamSpec"))
_BUILTIN_GENERICS: Final = frozenset(("dict", "list", "tuple", "set", "frozenset", "type"))
_SKIPPED_FIELDS: Final = frozenset(("annotation", "returns", "format_spec", "ctx"))
_SKIPPED_TARGETS: Final = frozenset(("__all__", "__slots__"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place where one operator applies; `key` finds it again when lines have moved."""

    scope: str
    fingerprint: str
    operator: str
    ordinal: int
    # The lines that run when the site does: the enclosing statement without its blocks.
    first_line: int
    last_line: int
    # True if the code runs once per process: at import, or in a function that caches its result.
    runs_once: bool
    before: str
    after: str
    _parent: ast.AST
    _field: str
    _index: int | None
    _mutated: ast.AST

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.scope, self.fingerprint, self.operator, self.ordinal

    def apply(self) -> None:
        """Mutate the tree that the site was found in."""
        if self._index is None:
            setattr(self._parent, self._field, self._mutated)
        else:
            getattr(self._parent, self._field)[self._index] = self._mutated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    scope: str = ""
    function: Function | None = None
    # The node whose source is fingerprinted: the function, or the statement outside functions.
    anchor: ast.AST
    statement: ast.AST
    is_message: bool = False
    is_condition: bool = False


class SourceFile:
    """A parsed source file and its mutation sites, in source order."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines()
        self._tree = ast.parse(source)
        self._counts: Counter[tuple[int, str]] = Counter()
        self.statements = sum(isinstance(node, ast.stmt) for node in ast.walk(self._tree))
        self.sites = list(self._walk(self._tree, _Context(anchor=self._tree, statement=self._tree)))

    def mutate(self, site: Site, filename: str) -> CodeType:
        """Return the code of the file with one site mutated; the tree is spent afterwards."""
        site.apply()
        return compile(ast.fix_missing_locations(self._tree), filename, "exec", dont_inherit=True)

    def _walk(self, parent: ast.AST, outer: _Context) -> Iterator[Site]:
        for field, value in ast.iter_fields(parent):
            if field in _SKIPPED_FIELDS:
                continue
            context = _enter_block(parent, field, outer)
            for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(child, ast.AST) and not _is_skipped(parent, field, child):
                    is_condition = field == "test" and isinstance(parent, ast.If | ast.IfExp)
                    inner = replace(_enter(child, context), is_condition=is_condition)
                    yield from self._sites_of(parent, field, index, child, inner)
                    yield from self._walk(child, inner)

    def _sites_of(
        self, parent: ast.AST, field: str, index: int | None, node: ast.AST, context: _Context
    ) -> Iterator[Site]:
        for name, operator in _OPERATORS.items():
            for mutated in operator(node, context):
                ordinal = self._counts[id(context.anchor), name]
                self._counts[id(context.anchor), name] += 1
                first, last = _header_of(context.statement)
                yield Site(
                    scope=context.scope or "<module>",
                    fingerprint=self._fingerprint(context.anchor),
                    operator=name,
                    ordinal=ordinal,
                    first_line=first,
                    last_line=last,
                    runs_once=context.function is None or _is_cached(context.function),
                    before=ast.unparse(node),
                    after=ast.unparse(mutated),
                    _parent=parent,
                    _field=field,
                    _index=index,
                    _mutated=ast.copy_location(mutated, node),
                )

    def _fingerprint(self, anchor: ast.AST) -> str:
        first, last = getattr(anchor, "lineno", 1), getattr(anchor, "end_lineno", len(self._lines))
        return hashlib.sha256("\n".join(self._lines[first - 1 : last]).encode()).hexdigest()[:12]


def _enter_block(parent: ast.AST, field: str, context: _Context) -> _Context:
    if field != "body" or not isinstance(parent, ast.ClassDef | Function):
        return context
    scope = f"{context.scope}.{parent.name}" if context.scope else parent.name
    if isinstance(parent, ast.ClassDef):
        return replace(context, scope=scope)
    return replace(context, scope=scope, function=parent, anchor=parent)


def _enter(node: ast.AST, context: _Context) -> _Context:
    if isinstance(node, ast.stmt):
        context = replace(
            context,
            statement=node,
            anchor=node if context.function is None else context.anchor,
            is_message=isinstance(node, ast.Raise),
        )
    elif _is_for_people(node):
        context = replace(context, is_message=True)
    return context


def _is_for_people(node: ast.AST) -> bool:
    """True if the strings in a node are the text of an error or of a help page."""
    match node:
        case ast.keyword(arg=name):
            return name in _TEXTS
        case ast.Call(func=function):
            return _name_of(function).endswith(("Error", "Fault", "Exception"))
    return False


def _is_skipped(parent: ast.AST, field: str, node: ast.AST) -> bool:
    """True for code that says nothing about behaviour: types, log messages, docstrings, `__repr__`."""
    match node:
        case ast.FunctionDef(name="__repr__") | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=test):
            return any(name in ast.unparse(test) for name in ("TYPE_CHECKING", "__name__"))
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _SKIPPED_TARGETS
        case ast.Call(func=function):
            return _is_log(node) or (field == "decorator_list" and _name_of(function) == "dataclass")
    return _is_type_argument(parent, field, node)


def _is_type_argument(parent: ast.AST, field: str, node: ast.AST) -> bool:
    match parent:
        case ast.Call(func=function):
            return _name_of(function) in _TYPE_CALLS and isinstance(node, ast.Constant)
        case ast.Subscript(value=generic):
            return field == "slice" and _is_type(_name_of(generic))
    return False


def _is_type(name: str) -> bool:
    return name in _BUILTIN_GENERICS or (name[:1].isupper() and not name.isupper())


def _is_log(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=logger, attr=method)):
            return method in _LOG_METHODS and "log" in _name_of(logger).lower()
    return False


def _is_cached(function: Function) -> bool:
    names = (
        _name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for decorator in function.decorator_list
    )
    return any("cache" in name for name in names)


def _name_of(node: ast.AST) -> str:
    """Return the last part of a dotted name; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _header_of(statement: ast.AST) -> tuple[int, int]:
    """Return the first and last line of a statement without its blocks."""
    first = min((node.lineno for node in getattr(statement, "decorator_list", ())), default=0)
    first = first or getattr(statement, "lineno", 1)
    if isinstance(statement, ast.Match):
        return first, statement.subject.end_lineno or first
    body = getattr(statement, "body", None)
    if body:
        return first, max(getattr(statement, "lineno", first), body[0].lineno - 1)
    return first, getattr(statement, "end_lineno", None) or first


def _comparison(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            if swapped := _COMPARISONS.get(type(operator)):
                ops = [*node.ops[:index], swapped(), *node.ops[index + 1 :]]
                yield ast.Compare(left=node.left, ops=ops, comparators=node.comparators)


def _boolean(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values)


def _negation(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _integer(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)


def _string(node: ast.AST, context: _Context) -> Iterator[ast.AST]:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value
        and not context.is_message
    ):
        yield ast.Constant("")


def _return(node: ast.AST, context: _Context) -> Iterator[ast.AST]:
    annotation = context.function and context.function.returns
    if isinstance(node, ast.Return) and node.value is not None and annotation is not None:
        declared = ast.unparse(annotation)
        if not any(name in declared for name in ("None", "Optional", "Any")):
            yield ast.Return(ast.Constant(None))


def _raise(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.Raise):
        yield ast.Pass()


def _arithmetic(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            # A difference of texts or lists fails wherever it runs, so it would measure coverage only.
            if not any(
                isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(side)
                for side in (left, right)
            ):
                yield ast.BinOp(left=left, op=_ARITHMETIC[type(operator)](), right=right)
        case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in _ARITHMETIC:
            yield ast.AugAssign(target=target, op=_ARITHMETIC[type(operator)](), value=value)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _condition(node: ast.AST, context: _Context) -> Iterator[ast.AST]:
    if context.is_condition:
        yield ast.Constant(True)
        yield ast.Constant(False)


def _keyword(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in _TEXTS:
                rest = [other for other in node.keywords if other is not keyword]
                yield ast.Call(func=node.func, args=node.args, keywords=rest)


def _call(node: ast.AST, _: _Context) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_log(node.value):
        yield ast.Pass()


_OPERATORS: Final[Mapping[str, Callable[[ast.AST, _Context], Iterator[ast.AST]]]] = {
    "comparison": _comparison,
    "boolean": _boolean,
    "negation": _negation,
    "integer": _integer,
    "string": _string,
    "return": _return,
    "raise": _raise,
    "arithmetic": _arithmetic,
    "condition": _condition,
    "keyword": _keyword,
    "call": _call,
}
