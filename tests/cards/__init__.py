"""Files of other programs for the tests: made here, byte by byte."""

import base64
import io
import json
import struct
import zipfile
import zlib

PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind, body, crc=0):
    """A chunk of a PNG; `crc` turns bits of its checksum."""
    checksum = zlib.crc32(kind + body) ^ crc
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)


def png(*chunks):
    """A picture of one pixel with chunks before its end."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0))
    return PNG + head + b"".join(chunks) + chunk(b"IEND", b"")


def b64(value):
    """A JSON value as the text of a chunk."""
    return base64.b64encode(json.dumps(value).encode())


def card(version=2, **fields):
    """A card with these fields."""
    data = {"name": "Aria", "description": "Keeps the inn.", **fields}
    return {"spec": f"chara_card_v{version}", "spec_version": f"{version}.0", "data": data}


def text_chunk(value, key=b"chara"):
    """A `tEXt` chunk that holds a card."""
    return chunk(b"tEXt", key + b"\0" + b64(value))


def packed_chunk(value, key=b"ccv3"):
    """A `zTXt` chunk, its base64 with line breaks and without padding."""
    text = b64(value).rstrip(b"=")
    lines = b"\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    return chunk(b"zTXt", key + b"\0\0" + zlib.compress(lines))


def zipped(files, before=b""):
    """A zip of texts by name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return before + file.getvalue()
