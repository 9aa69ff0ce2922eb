"""Converts messages to plain dicts."""

from __future__ import annotations

from typing import Any, Dict


def to_dict(message: Any) -> Dict[str, Any]:
    """The fields that are set, under their names in the .proto file. Unlike in JSON, 64-bit integers stay integers."""
    out: Dict[str, Any] = {}
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            is_message = kind.fields_by_name["value"].message_type is not None
            out[field.name] = {key: to_dict(value[key]) if is_message else value[key] for key in value}
        elif hasattr(value, "append") and not isinstance(value, (str, bytes)):
            out[field.name] = [_item(field, item) for item in value]
        else:
            out[field.name] = _item(field, value)
    return out


def _item(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return to_dict(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value
