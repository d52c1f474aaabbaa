"""What sections of the configuration are made of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from gateway.config.value import parse_age, parse_moment, parse_room, parse_size, parse_span

Span = Annotated[timedelta, BeforeValidator(parse_span)]
# How old an answer may be; 0 for not at all.
Age = Annotated[timedelta, BeforeValidator(parse_age)]
Size = Annotated[int, BeforeValidator(parse_size)]
# How much may be kept; 0 for nothing.
Room = Annotated[int, BeforeValidator(parse_room)]
Moment = Annotated[datetime, BeforeValidator(parse_moment)]


class Section(BaseModel):
    """A mapping of the file: camelCase keys, no others, immutable."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )
