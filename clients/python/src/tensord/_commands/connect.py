"""Flags of all commands: the server's address, credentials, and the output format."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import enum
import json
import math
import os
from typing import Any, Callable, Dict, List

import numpy as np

from tensord._connection import TLS
from tensord.client import Client
from tensord.errors import InvalidArgumentError

Command = Callable[[argparse.Namespace], int]


def add_command(commands: Any, name: str, run: Command, help_text: str) -> argparse.ArgumentParser:
    out: argparse.ArgumentParser = commands.add_parser(name, help=help_text, description=help_text)
    out.set_defaults(run=run)
    out.add_argument("--address", default=os.environ.get("TENSORD_ADDRESS") or "127.0.0.1:8001",
                     help="where the server listens for gRPC; default $TENSORD_ADDRESS, else 127.0.0.1:8001")
    out.add_argument("--json", action="store_true", help="JSON instead of text, one object for each line")
    out.add_argument("--timeout", type=float, help="timeout of a call in seconds")
    out.add_argument("--tls", action="store_true", help="use TLS; the system's certificate authorities are trusted")
    out.add_argument("--root-cert", help="PEM file of trusted certificate authorities instead")
    out.add_argument("--cert", help="PEM file of this client's certificate")
    out.add_argument("--key", help="PEM file of its private key")
    out.add_argument("--server-name", default="", help="name in the server's certificate, if it differs from the address")
    out.add_argument("--token-file", help="file with the token that is sent as `authorization: Bearer`; default: the token in $TENSORD_TOKEN")
    return out


def connect(given: argparse.Namespace) -> Client:
    wants_tls = given.tls or given.root_cert or given.cert or given.key or given.server_name
    tls = TLS(given.root_cert, given.cert, given.key, given.server_name) if wants_tls else False
    token = os.environ.get("TENSORD_TOKEN") or None
    if given.token_file:
        with open(given.token_file) as file:
            token = file.read().strip()
    return Client(given.address, tls=tls, token=token, timeout=60.0 if given.timeout is None else given.timeout)


def json_value(value: Any) -> Any:
    """Converts to JSON values; bytes become strings, NaN and infinity become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        return json_value(value.astype(np.float64).tolist() if value.dtype.name == "bfloat16" else value.tolist())
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: Any) -> None:
    print(json.dumps(json_value(value), ensure_ascii=False), flush=True)


def print_table(header: List[str], rows: List[List[str]]) -> None:
    """Prints columns separated by two spaces, numbers right-aligned."""
    columns = list(zip(*[header, *rows]))
    widths = [max(map(len, column)) for column in columns]
    align = [str.rjust if rows and all(map(_is_number, column[1:])) else str.ljust for column in columns]
    for row in [header, *rows]:
        print("  ".join(put(cell, width) for put, cell, width in zip(align, row, widths)).rstrip())


def _is_number(string: str) -> bool:
    try:
        float(string)
    except ValueError:
        return False
    return True


def pairs(arguments: List[str], flag: str, form: str) -> Dict[str, str]:
    """NAME=VALUE of a flag that may be repeated."""
    out: Dict[str, str] = {}
    for argument in arguments:
        name, mark, value = argument.partition("=")
        if not name or not mark:
            raise InvalidArgumentError(f"{flag}: takes {form}, got '{argument}'")
        out[name] = value
    return out
