"""SQL predicates: the subset of the sharing protocol, and what Spark writes its filters as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from gateway.services.snapshot.predicate.data_type import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LOCAL_TIMESTAMP,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    find_type,
)
from gateway.services.snapshot.predicate.expression import (
    MAX_DEPTH,
    MAX_NODES,
    UNKNOWN,
    And,
    Column,
    Expression,
    Literal,
    Not,
    Operand,
    Operator,
    Or,
    ParseFault,
    Unknown,
    cast,
    compare,
    compare_null_safe,
    has_prefix,
    holds,
    is_in,
    is_null,
)
from gateway.services.snapshot.predicate.token import Kind, Token, read_tokens

Node: TypeAlias = Expression | Operand


def parse_sql(text: str) -> Expression:
    """Return the predicate of an SQL text, or raise ``ParseFault``."""
    return _Parser(read_tokens(text)).parse()


class _Parser:
    """Reads by precedence; a part of the language that is not known makes that part unknown."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._nodes = 0

    def parse(self) -> Expression:
        found = _truth(self._read(0))
        if self._peek.kind is not Kind.END:
            raise ParseFault(f"unexpected {self._peek.text!r}")
        return found

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    @property
    def _keyword(self) -> str:
        token = self._peek
        return token.text.upper() if token.kind in {Kind.WORD, Kind.SYMBOL} else ""

    def _take(self) -> Token:
        token = self._peek
        self._next += token.kind is not Kind.END
        return token

    def _accept(self, *words: str) -> bool:
        """Take the words if they are the next ones."""
        ahead = self._tokens[self._next : self._next + len(words)]
        if [token.text.upper() for token in ahead] != list(words) or any(
            token.kind not in {Kind.WORD, Kind.SYMBOL} for token in ahead
        ):
            return False
        self._next += len(words)
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise ParseFault(f"expected {word}, not {self._peek.text!r}")

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ParseFault("too deep")

    def _read(self, strength: int) -> Node:
        """Return what the next words say, up to an operator that binds less than that."""
        self._descend()
        left = self._read_first()
        while (binding := _STRENGTHS.get(self._keyword, 0)) > strength:
            self._nodes += 1
            if self._nodes > MAX_NODES:
                raise ParseFault("too large")
            left = self._read_rest(left, binding)
        self._depth -= 1
        return left

    def _read_rest(self, left: Node, binding: int) -> Node:
        word = self._take().text.upper()
        if word in {"AND", "OR"}:
            return _joined(word, left, self._read(binding))
        if word in _COMPARISONS:
            return compare(_COMPARISONS[word], _operand(left), _operand(self._read(binding)))
        if word in _TESTS:
            return self._read_test(word, _operand(left), binding)
        # Arithmetic and the like.
        self._read(binding)
        return UNKNOWN

    def _read_test(self, word: str, left: Operand, binding: int) -> Node:
        if word == "<=>":
            return compare_null_safe(left, _operand(self._read(binding)))
        if word == "NOT":
            self._descend()
            found = _truth(self._read_test(self._take().text.upper(), left, binding))
            self._depth -= 1
            return Not(child=found)
        tests: Mapping[str, Callable[[Operand], Expression]] = {
            "IS": self._read_is,
            "IN": self._read_in,
            "BETWEEN": self._read_between,
            "LIKE": self._read_like,
            **dict.fromkeys(_PATTERNS, self._read_pattern),
        }
        if word not in tests:
            raise ParseFault(f"unexpected {word!r}")
        return tests[word](left)

    def _read_is(self, left: Operand) -> Expression:
        negated = self._accept("NOT")
        if self._accept("NULL"):
            return Not(child=is_null(left)) if negated else is_null(left)
        if self._accept("DISTINCT", "FROM"):
            same = compare_null_safe(left, _operand(self._read(_COMPARING)))
            return same if negated else Not(child=same)
        if self._keyword in {"TRUE", "FALSE", "UNKNOWN"}:
            word = self._take().text.upper()
            same = is_null(left) if word == "UNKNOWN" else compare_null_safe(left, _CONSTANTS[word])
            return Not(child=same) if negated else same
        raise ParseFault(f"unexpected {self._peek.text!r}")

    def _read_in(self, left: Operand) -> Expression:
        self._expect("(")
        return is_in(left, self._read_list())

    def _read_between(self, left: Operand) -> Expression:
        low = _operand(self._read(_COMPARING))
        self._expect("AND")
        high = _operand(self._read(_COMPARING))
        return And(children=(compare(Operator.GE, left, low), compare(Operator.LE, left, high)))

    def _read_like(self, left: Operand) -> Expression:
        pattern = _operand(self._read(_COMPARING))
        escape = self._take().text if self._accept("ESCAPE") else "\\"
        if not isinstance(pattern, Literal) or pattern.type != STRING or pattern.casts:
            return UNKNOWN
        return _like(left, pattern, escape)

    def _read_pattern(self, left: Operand) -> Expression:
        """Read past a match that statistics say nothing about."""
        self._read(_COMPARING)
        if self._accept("ESCAPE"):
            self._take()
        return UNKNOWN

    def _read_list(self) -> tuple[Operand, ...]:
        """Return the operands up to the closing parenthesis."""
        items: list[Operand] = []
        while not self._accept(")"):
            if items:
                self._expect(",")
            items.append(_operand(self._read(0)))
        return tuple(items)

    def _read_first(self) -> Node:
        token = self._take()
        if token.kind is Kind.WORD:
            return self._read_word(token)
        if token.kind is Kind.SYMBOL:
            return self._read_symbol(token.text)
        if token.kind is Kind.NAME:
            return self._read_name(token)
        if token.kind is Kind.END:
            raise ParseFault("unexpected end")
        return _literal(token)

    def _read_symbol(self, symbol: str) -> Node:
        if symbol == "(":
            found = self._read(0)
            self._expect(")")
            return found
        if symbol == "!":
            return Not(child=_truth(self._read(_NEGATING)))
        if symbol in {"-", "+"}:
            return _signed(symbol, self._read(_SIGNING))
        raise ParseFault(f"unexpected {symbol!r}")

    def _read_word(self, token: Token) -> Node:
        word = token.text.upper()
        if word == "NOT":
            return Not(child=_truth(self._read(_NEGATING)))
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if self._peek.kind in {Kind.STRING, Kind.DOUBTFUL_STRING}:
            return _typed(word, self._take())
        if word in _RESERVED:
            raise ParseFault(f"unexpected {token.text!r}")
        if self._accept("("):
            return self._read_cast() if word in {"CAST", "TRY_CAST"} else _call(word, self._read_list())
        # A column may be called so too: an operator follows it then.
        is_case = word == "CASE" and self._keyword not in _STRENGTHS
        return self._read_case() if is_case else self._read_name(token)

    def _read_name(self, first: Token) -> Operand:
        parts = [first.text]
        while self._accept("."):
            part = self._take()
            if part.kind not in {Kind.WORD, Kind.NAME}:
                raise ParseFault(f"unexpected {part.text!r}")
            parts.append(part.text)
            if len(parts) > MAX_DEPTH:
                raise ParseFault("too deep")
        return self._read_item() if self._keyword == "[" else Column(path=tuple(parts))

    def _read_item(self) -> Unknown:
        """Read past the item of an array or a map, and the names below it."""
        while self._accept("["):
            self._read(0)
            self._expect("]")
            while self._accept("."):
                self._take()
        return UNKNOWN

    def _read_case(self) -> Unknown:
        if self._keyword != "WHEN":
            self._read(0)
        while self._accept("WHEN"):
            self._read(0)
            self._expect("THEN")
            self._read(0)
        if self._accept("ELSE"):
            self._read(0)
        self._expect("END")
        return UNKNOWN

    def _read_cast(self) -> Operand:
        operand = _operand(self._read(0))
        self._expect("AS")
        name: list[str] = []
        open_parentheses = 0
        while open_parentheses or self._keyword != ")":
            token = self._take()
            if token.kind is Kind.END:
                raise ParseFault("unexpected end")
            open_parentheses += {"(": 1, ")": -1}.get(token.text, 0)
            name.append(token.text)
        self._take()
        return cast(operand, find_type("".join(name)))


def _operand(node: Node) -> Operand:
    return node if isinstance(node, Column | Literal | Unknown) else UNKNOWN


def _truth(node: Node) -> Expression:
    return holds(node) if isinstance(node, Column | Literal) else node


def _joined(word: str, left: Node, right: Node) -> Expression:
    """Return both; a long chain of the same kind becomes one wide node, not a deep one."""
    kind = And if word == "AND" else Or
    children: list[Expression] = []
    for side in (_truth(left), _truth(right)):
        children.extend(side.children if isinstance(side, kind) else [side])
    return kind(children=tuple(children))


def _literal(token: Token) -> Operand:
    if token.kind is Kind.STRING:
        return Literal(text=token.text, type=STRING)
    return _number(token.text.upper()) if token.kind is Kind.NUMBER else UNKNOWN


def _number(text: str) -> Literal:
    digits = text.rstrip("LSYDFB")
    suffix = text[len(digits) :]
    if suffix == "F":
        return Literal(text=digits, type=FLOAT)
    if suffix not in {"D", "BD"} and digits.isdigit():
        return Literal(text=digits, type=LONG)
    # A decimal may have more digits than a double has.
    return Literal(text=digits, type=DOUBLE if suffix == "D" or len(digits) <= _FEW_DIGITS else _LONG_DECIMAL)


def _signed(sign: str, node: Node) -> Operand:
    if not isinstance(node, Literal) or node.type not in _NUMBERS or node.casts:
        return UNKNOWN
    if node.text is None or node.text[0] in "+-":
        return UNKNOWN
    return Literal(text=node.text if sign == "+" else f"-{node.text}", type=node.type)


def _typed(word: str, token: Token) -> Operand:
    """Return a constant that is written as a string behind its type."""
    types = {
        "DATE": DATE,
        "TIMESTAMP": TIMESTAMP,
        "TIMESTAMP_LTZ": TIMESTAMP,
        "TIMESTAMP_NTZ": LOCAL_TIMESTAMP,
    }
    if word in types and token.kind is Kind.STRING:
        return Literal(text=token.text, type=STRING, casts=(types[word],))
    if word in types or word in {"X", "R"}:
        return UNKNOWN
    raise ParseFault(f"unexpected {token.text!r}")


def _call(name: str, arguments: Sequence[Operand]) -> Node:
    match name, arguments:
        case "ISNULL", [operand]:
            return is_null(operand)
        case "ISNOTNULL", [operand]:
            return Not(child=is_null(operand))
        case "STARTSWITH", [operand, Literal(text=str(prefix), type=type_, casts=())] if type_ == STRING:
            return has_prefix(operand, prefix)
        case (("TIMESTAMP" | "DATE"), [operand]):
            return cast(operand, find_type(name))
    return UNKNOWN


def _like(operand: Operand, pattern: Literal, escape: str) -> Expression:
    text = pattern.text or ""
    plain = next((index for index, char in enumerate(text) if char in {"%", "_", "\\", escape}), len(text))
    found = (
        compare(Operator.EQ, operand, pattern) if plain == len(text) else has_prefix(operand, text[:plain])
    )
    # What has the prefix need not match, and what is not a text matches by how it is written: a match can
    # be ruled out by this, and never be taken for granted.
    return And(children=(found, UNKNOWN))


_FEW_DIGITS: Final = 15
_LONG_DECIMAL: Final = DataType("decimal", 38, 18)
_NUMBERS: Final = frozenset({LONG, DOUBLE, FLOAT, _LONG_DECIMAL})
_CONSTANTS: Final[Mapping[str, Literal]] = {
    "TRUE": Literal(text="true", type=BOOLEAN),
    "FALSE": Literal(text="false", type=BOOLEAN),
    "NULL": Literal(text=None, type=STRING),
}
# Spark quotes a name for its characters alone: any other word may be a column's, as `end` and `from` are.
_RESERVED: Final = frozenset({"AND", "OR", "IN", "IS", "BETWEEN", "LIKE", "SELECT"})
_COMPARISONS: Final[Mapping[str, Operator]] = {
    **{str(operator): operator for operator in Operator},
    "==": Operator.EQ,
    "!=": Operator.NE,
}
_PATTERNS: Final = ("ILIKE", "RLIKE", "REGEXP")
_TESTS: Final = frozenset({"<=>", "IS", "IN", "BETWEEN", "LIKE", "NOT", *_PATTERNS})
_NEGATING: Final = 3
_COMPARING: Final = 4
_SIGNING: Final = 9
_STRENGTHS: Final[Mapping[str, int]] = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys((*_COMPARISONS, *_TESTS), _COMPARING),
    **dict.fromkeys(("||", "|", "^", "&"), 5),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
