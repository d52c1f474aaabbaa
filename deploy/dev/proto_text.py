"""What the protos and their comments say, as Markdown."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

# Numbers of fields in descriptor.proto: the steps of a path to what a comment stands before.
_MESSAGE: Final = 4
_ENUM: Final = 5
_SERVICE: Final = 6
_MEMBER: Final = 2

_Path = tuple[int, ...]


class UndocumentedError(Exception):
    """Something that callers must understand has no comment."""


def read_protos(directory: Path) -> Sequence[FileDescriptorProto]:
    """Return all files below a directory, with their comments."""
    names = sorted(str(file.relative_to(directory)) for file in directory.rglob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        options = ["--include_source_info", f"--descriptor_set_out={out.name}"]
        if protoc.main(["protoc", f"-I{directory}", *options, *names]):
            raise UndocumentedError("the protos cannot be read")
        return FileDescriptorSet.FromString(Path(out.name).read_bytes()).file


@dataclass(frozen=True)
class ProtoText:
    """One file's services, messages and enums."""

    file: FileDescriptorProto

    def services(self) -> Iterator[str]:
        for number, service in enumerate(self.file.service):
            yield f"### {service.name}"
            yield self._comment((_SERVICE, number), service.name)
            yield from self._methods(service, (_SERVICE, number))

    def messages(self) -> Iterator[str]:
        for number, message in enumerate(self.file.message_type):
            yield f"### {message.name}"
            yield self._comment((_MESSAGE, number), message.name)
            if message.field:
                yield self._fields(message, (_MESSAGE, number))
        for number, enum in enumerate(self.file.enum_type):
            yield f"### {enum.name}"
            yield self._comment((_ENUM, number), enum.name)
            yield self._values(enum, (_ENUM, number))

    def _methods(self, service: ServiceDescriptorProto, path: _Path) -> Iterator[str]:
        for number, method in enumerate(service.method):
            answer = f"{'stream of ' if method.server_streaming else ''}{_link(method.output_type)}"
            yield f"**`{service.name}.{method.name}`** ({_link(method.input_type)}) → {answer}  "
            yield self._comment((*path, _MEMBER, number), f"{service.name}.{method.name}")

    def _fields(self, message: DescriptorProto, path: _Path) -> str:
        rows = []
        for number, field in enumerate(message.field):
            comment = self._find((*path, _MEMBER, number))
            # Of what has a type of its own, that type's comment may be all there is to say.
            if not comment and not field.type_name:
                raise UndocumentedError(f"the field {message.name}.{field.name} has no comment")
            rows.append((f"`{field.name}`", str(field.number), _type(field, message), comment))
        return table(("field", "number", "type", "meaning"), rows)

    def _values(self, enum: EnumDescriptorProto, path: _Path) -> str:
        rows = [
            (f"`{value.name}`", str(value.number), self._comment((*path, _MEMBER, number), value.name))
            for number, value in enumerate(enum.value)
        ]
        return table(("value", "number", "meaning"), rows)

    def _comment(self, path: _Path, name: str) -> str:
        comment = self._find(path)
        if not comment:
            raise UndocumentedError(f"{name} has no comment")
        return comment

    def _find(self, path: _Path) -> str:
        for location in self.file.source_code_info.location:
            if tuple(location.path) == path:
                return " ".join(location.leading_comments.split())
        return ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    if field.type_name:
        name = _link(field.type_name)
    else:
        name = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    entries = {nested.name for nested in message.nested_type if nested.options.map_entry}
    if field.type_name.rpartition(".")[2] in entries:
        return "map of string to string"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {name}"
    if field.proto3_optional:
        return f"optional {name}"
    if field.HasField("oneof_index"):
        return f"{name}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return name


def _link(type_name: str) -> str:
    name = type_name.rpartition(".")[2]
    return f"[{name}](#{name.lower()})"
