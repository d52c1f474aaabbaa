from __future__ import annotations

from gateway.edge.json import encode_json


def test_json_is_compact_on_one_line_and_in_ascii() -> None:
    assert encode_json({"a": [1, None], "b": "é\u2028\n"}) == b'{"a":[1,null],"b":"\\u00e9\\u2028\\n"}'
