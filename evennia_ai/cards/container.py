"""The files that character cards come in: PNG, CHARX (a zip), JSON. Read with limits, and written.

The JSON of a card sits in a text chunk of a picture, `ccv3` or `chara`, as base64; in the file
`card.json` of a zip, which may stand behind a JPEG; or is the file. Nothing is unpacked beyond
`JSON_BYTES`. Specifications: character-card-spec-v2, character-card-spec-v3.
"""

import base64
import binascii
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from evennia_ai.errors import Refusal

FILE_BYTES, JSON_BYTES, ZIP_FILES = 20_000_000, 4_194_304, 1_000
# Deepest nesting of a card's values, and most digits of a number.
DEPTH, DIGITS = 40, 300
FORMATS = ("json", "png", "charx")
READ = "Cards are read from PNG, CHARX, JSON and YAML, lorebooks from JSON"
# Most bytes of a file in YAML, whose reader is slow.
YAML_BYTES = 262_144
# Chunks that hold a card; where both are there, the first counts.
KEYS = ("ccv3", "chara")
PNG, _ZIPPED, _JPEG = b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\xff\xd8\xff"
_DIRECTORY_ENTRY, _LOCKED = b"PK\x01\x02", b"rcc||"
# A comment or a plain key at the beginning of a line.
_YAML = re.compile(r"\s*(?:#.*\n\s*|---\s*\n)*[A-Za-z_]\w*:(?:\s|$)")
_TOO_LARGE = f"the card unpacks to more than {JSON_BYTES:,} bytes"
_ENDS = "the PNG ends in the middle: the download is incomplete"


@dataclass(frozen=True, slots=True)
class Contents:
    """The JSON value of a file, and what is to be said about the file."""

    value: Any
    form: str
    notes: tuple[str, ...] = ()


def read(data: bytes) -> Contents:
    """What a file holds; raises `Refusal` with one sentence."""
    if len(data) > FILE_BYTES:
        raise Refusal(f"the file is larger than {FILE_BYTES:,} bytes")
    if data.startswith(PNG):
        return _read_png(data)
    is_picture = data.startswith(_JPEG)
    if data.startswith(_ZIPPED) or (is_picture and _DIRECTORY_ENTRY in data):
        return _read_zip(data)
    if is_picture or data[8:12] == b"WEBP":
        raise Refusal(f"cards are not read from JPEG or WEBP pictures. {READ}")
    if (value := _yaml(data)) is not None:
        return Contents(value, "yaml")
    return Contents(parsed(data), "json")


def parsed(data: bytes) -> Any:
    """The value of a JSON text in any Unicode encoding; raises `Refusal`."""
    if len(data) > JSON_BYTES:
        raise Refusal(_TOO_LARGE)
    try:
        text = data.decode(json.detect_encoding(data), "replace")
        value = json.loads(
            text,
            parse_constant=lambda _: None,
            parse_int=whole_number,
            strict=False,
        )
    except RecursionError:
        raise Refusal("the JSON is nested too deeply") from None
    except ValueError as error:
        raise Refusal(f"this is no JSON ({error}). {READ}") from None
    level, depth = [value], 0
    while level:
        lists = [part for part in level if isinstance(part, list)]
        lists += [list(part.values()) for part in level if isinstance(part, dict)]
        level = [each for part in lists for each in part]
        if (depth := depth + 1) > DEPTH:
            raise Refusal("the JSON is nested too deeply")
    return value


def _yaml(data: bytes) -> dict[str, Any] | None:
    """The fields of a character in YAML, as oobabooga's web UI writes them; None for other files.

    Values are texts and lists or mappings of such; a part that is named and repeated is refused.
    """
    text = data.decode("utf-8-sig", "replace")
    if len(data) > YAML_BYTES or not _YAML.match(text):
        return None
    try:
        if any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, yaml.BaseLoader)):
            return None
        value: dict[str, Any] = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - texts alone
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return value


def whole_number(digits: str) -> int | str:
    """The value of a number's digits; the digits themselves where there are too many."""
    if len(digits) > DIGITS:
        return digits
    return int(digits)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Kind, body and soundness of each chunk of a PNG, up to its end."""
    place, kind = len(PNG), b""
    while kind != b"IEND":
        if place + 12 > len(data):
            raise Refusal(_ENDS)
        size, kind = struct.unpack_from(">I4s", data, place)
        body, place = data[place + 8 : place + 8 + size], place + 12 + size
        if place > len(data):
            raise Refusal(_ENDS)
        yield kind, body, zlib.crc32(kind + body) == int.from_bytes(data[place - 4 : place], "big")


def _key_of(kind: bytes, body: bytes) -> str:
    """The key of a text chunk, in lower case."""
    if kind not in (b"tEXt", b"zTXt", b"iTXt"):
        return ""
    return body[:80].partition(b"\0")[0].decode("latin-1").lower()


def _read_png(data: bytes) -> Contents:
    texts, notes = {}, []
    for kind, body, is_sound in _chunks(data):
        if (key := _key_of(kind, body)) in KEYS:
            texts[key] = kind, body
            if not is_sound:
                notes.append(f"checksum of `{key}` is wrong")
    key = next((key for key in KEYS if key in texts), "")
    if not key:
        raise Refusal("the picture holds no card: its site took it out, or it never had one")
    text = _text_of(*texts[key])
    if text.startswith(_LOCKED):
        raise Refusal("this card is locked by RisuAI: export it there without the lock")
    if len(texts) > 1:
        notes.append(f"the file holds two cards; `{key}` is used")
    text = b"".join(text.split()).rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    try:
        value = parsed(base64.b64decode(text + b"=" * (-len(text) % 4), validate=True))
    except binascii.Error:
        raise Refusal(f"`{key}` of the picture is no base64: it is damaged") from None
    return Contents(value, "png", tuple(notes))


def _text_of(kind: bytes, body: bytes) -> bytes:
    """The text of a text chunk, unpacked up to the limit."""
    rest = body.partition(b"\0")[2]
    is_packed = kind == b"zTXt" or (kind == b"iTXt" and rest[:1] == b"\1")
    if kind == b"iTXt":  # two flags, the language and the key in it
        rest = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    elif kind == b"zTXt":
        rest = rest[1:]
    most = JSON_BYTES * 3 // 2  # base64, with line breaks
    if is_packed:
        try:
            rest = zlib.decompressobj().decompress(rest, most + 1)
        except zlib.error:
            raise Refusal("the packed text of the picture is damaged") from None
    if len(rest) > most:
        raise Refusal(_TOO_LARGE)
    return rest


def _read_zip(data: bytes) -> Contents:
    count = data.count(_DIRECTORY_ENTRY)
    if count > ZIP_FILES:
        raise Refusal(f"the CHARX file has {count:,} files; {ZIP_FILES:,} are allowed")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "card.json" not in names:
                why = "the CHARX file has no card.json at its top"
                deeper = next((name for name in names if name.endswith("/card.json")), "")
                if deeper:
                    why += f", only `{deeper}`: pack the folder's contents"
                raise Refusal(why)
            if archive.getinfo("card.json").flag_bits & 1:
                raise Refusal("the CHARX file is encrypted")
            with archive.open("card.json") as file:
                text = file.read(JSON_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError):
        raise Refusal("the CHARX file is damaged") from None
    notes, other = list[str](), len(names) - 1
    if other == 1:
        notes.append("1 other file is not taken")
    elif other:
        notes.append(f"{other:,} other files are not taken")
    return Contents(parsed(text), "charx", tuple(notes))


def packed(card: dict[str, Any], form: str, source: bytes = b"") -> bytes:
    """A card of version 3 as a file in one of `FORMATS`; of a `source` the picture stays."""
    text = json.dumps(card, indent=1).encode()
    if form == "json":
        return text
    if form == "charx":
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("card.json", text)
        return file.getvalue()
    if form != "png":
        raise Refusal(f"cards are written as {', '.join(FORMATS)}, not as `{form}`")
    chunks = _PIXEL
    if source.startswith(PNG):
        chunks = [chunk[:2] for chunk in _chunks(source)]
    older = {**card, "spec": "chara_card_v2", "spec_version": "2.0"}
    texts = [
        (b"tEXt", key.encode() + b"\0" + base64.b64encode(json.dumps(value).encode()))
        for key, value in zip(KEYS, (card, older), strict=True)
    ]
    chunks = [chunk for chunk in chunks if _key_of(*chunk) not in KEYS]
    parts = [PNG]
    for kind, body in (chunks[0], *texts, *chunks[1:]):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        parts += [struct.pack(">I", len(body)), kind, body, checksum]
    return b"".join(parts)


_PIXEL = [
    (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)),
    (b"IDAT", zlib.compress(b"\0" * 5)),
    (b"IEND", b""),
]
