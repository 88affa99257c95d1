"""A small reader of Varlink interface descriptions, to hold replies against them. For tests only."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*|->|\[\]|\[string\]|[?():,]")
_BASIC = {"string": str, "int": int, "bool": bool, "float": (int, float), "object": dict}

Type = object  # a name, ("?", Type), ("[]", Type), ("enum", names) or ("struct", {name: Type})


@dataclass
class Interface:
    name: str
    types: dict[str, Type] = field(default_factory=dict)
    methods: dict[str, tuple[Type, Type]] = field(default_factory=dict)
    errors: dict[str, Type] = field(default_factory=dict)

    def complaint(self, kind: Type, value: object, where: str = "reply") -> str:
        """Why `value` is no `kind`, or ""."""
        if isinstance(kind, str):
            if kind in self.types:
                return self.complaint(self.types[kind], value, where)
            fits = isinstance(value, _BASIC[kind]) and (kind == "bool" or not isinstance(value, bool))  # type: ignore[arg-type]
            return "" if fits else f"{where}: {value!r} is no {kind}"
        assert isinstance(kind, tuple)
        match kind:
            case ("?", inner):
                return "" if value is None else self.complaint(inner, value, where)
            case ("[]", inner):
                items = value if isinstance(value, list) else [object()]
                return next((c for i, v in enumerate(items) if (c := self.complaint(inner, v, f"{where}[{i}]"))), "")
            case ("enum", names):
                return "" if value in names else f"{where}: {value!r} is none of {names}"
        return self._struct(kind[1], value, where)

    def _struct(self, members: dict[str, Type], value: object, where: str) -> str:
        if not isinstance(value, dict) or not set(value) <= set(members):
            return f"{where}: {value!r} is no {sorted(members)}"
        found = (self.complaint(kind, value.get(name), f"{where}.{name}") for name, kind in members.items())
        return next(filter(None, found), "")


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(re.sub("#.*", "", text))

    def next(self, wanted: str = "") -> str:
        token: str = self.tokens.pop(0)
        assert wanted in ("", token), f"{token!r} where {wanted!r} is wanted, before {self.tokens[:5]}"
        return token

    def interface(self) -> Interface:
        self.next("interface")
        interface = Interface(self.next())
        while self.tokens:
            self.member(interface)
        return interface

    def member(self, interface: Interface) -> None:
        kind, name = self.next(), self.next()
        assert re.fullmatch("[A-Z][A-Za-z0-9]*", name), name
        value = self.type()
        if kind == "method":
            self.next("->")
            interface.methods[name] = value, self.type()
        else:
            {"type": interface.types, "error": interface.errors}[kind][name] = value

    def type(self) -> Type:
        token = self.next()
        if token in ("?", "[]"):
            return token, self.type()
        return self.parentheses() if token == "(" else token

    def parentheses(self) -> Type:
        members: dict[str, Type] = {}
        names: list[str] = []
        while (name := self.next()) != ")":
            assert re.fullmatch("[A-Za-z](_?[A-Za-z0-9])*", name), name
            if self.tokens[0] == ":":
                self.next(":")
                members[name] = self.type()
            else:
                names.append(name)
            if self.tokens[0] == ",":
                self.next(",")
        return ("enum", tuple(names)) if names else ("struct", members)


def parse(text: str) -> Interface:
    return _Reader(text).interface()
