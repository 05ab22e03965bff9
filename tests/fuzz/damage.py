"""Ways in which bytes go wrong: by chance, by cutting, and by what programs stumble over."""

from random import Random

HOSTILE = [
    *(
        b"\x00",
        b"\r",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b",",
        b"\t",
        b";",
        b"\xff",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
    ),
    *(b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"99999999999999999999", b"null", b"true", b"[]", b"\x1f\x8b"),
    *(b"[" * 5_000, b"{" * 300, b'{"a":' * 2_000, b"(" * 3_000, b"*", b"&a [*a]", b"!!python/object:os.system x", b"%"),
    *(b"../../etc/passwd", b"\xd0\xa1", "🙂".encode(), b"\\u0000", b"C" * 30_000, b"C1" + b"C" * 6_000 + b"C1"),
]


def damaged(random: Random, content: bytes) -> bytes:
    """The content with one to four damages."""
    for _ in range(random.randint(1, 4)):
        content = random.choice(DAMAGES)(random, content)
    return content


def _place(random: Random, content: bytes) -> int:
    return random.randint(0, len(content))


def _flip(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.randint(1, 8)):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _cut(random: Random, content: bytes) -> bytes:
    return content[: _place(random, content)]


def _remove(random: Random, content: bytes) -> bytes:
    begin = _place(random, content)
    return content[:begin] + content[begin + random.randint(1, 40) :]


def _insert(random: Random, content: bytes) -> bytes:
    place = _place(random, content)
    return content[:place] + random.choice(HOSTILE) + content[place:]


def _replace(random: Random, content: bytes) -> bytes:
    place = _place(random, content)
    what = random.choice(HOSTILE)
    return content[:place] + what + content[place + len(what) :]


def _repeat(random: Random, content: bytes) -> bytes:
    begin = _place(random, content)
    piece = content[begin : begin + random.randint(1, 200)]
    return content[:begin] + piece * random.randint(2, 20) + content[begin + len(piece) :]


def _swap(random: Random, content: bytes) -> bytes:
    one, other, third = sorted(_place(random, content) for _ in range(3))
    return content[:one] + content[other:third] + content[one:other] + content[third:]


DAMAGES = [_flip, _flip, _cut, _remove, _insert, _insert, _replace, _repeat, _swap]
