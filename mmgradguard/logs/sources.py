"""From a file to lines of text: compression, encodings, line ends, giant lines."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Iterator

from mmgradguard.core.errors import LogParseError

_BLOCK = 2**20
_HEAD = 4096
#: Of a longer line the rest is dropped: no row and no config is that long.
MAX_LINE = 4 * 2**20
_GZIP = b'\x1f\x8b'
_BINARY = (b'\x89PNG', b'\x7fELF', b'%PDF', b'\xff\xd8\xff', b'BZh', b'\xfd7zXZ')
#: What a checkpoint begins with: a zip, or the pickle of an old `torch.save`.
_CHECKPOINT = (b'PK\x03\x04', b'\x80\x02', b'\x80\x03', b'\x80\x04', b'\x80\x05')


@dataclass
class Lines:
    """Consecutive lines, without their ends.

    A line may hold carriage returns of a progress bar. `is_last` says that the file
    ends here, `is_open` that its last line has no end.
    """

    first: int
    texts: list[str]
    is_last: bool = False
    is_open: bool = False


class _Stdin(io.RawIOBase):
    """What is piped in; to close it is not up to the reader of a log."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = sys.stdin.buffer.read(len(buffer)) if sys.stdin else b''
        buffer[: len(data)] = data
        return len(data)


class _Gunzip(io.RawIOBase):
    """What is in a gzip, also of one that ends too early: it is still being written."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed, self._rest = packed, b''
        self._unpacker = zlib.decompressobj(31)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b''
        while not data:
            self._rest = self._rest or self._packed.read(_BLOCK)
            if not self._rest:
                return 0
            data = self._unpacker.decompress(self._rest, len(buffer))
            self._rest = self._unpacker.unconsumed_tail
            if self._unpacker.eof:  # another member may follow
                self._rest = self._unpacker.unused_data.lstrip(b'\0')
                self._unpacker = zlib.decompressobj(31)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._packed.close()
        super().close()


def open_text(path: str) -> BinaryIO:
    """Open a file, ``-`` for stdin, unpacked if it is a gzip.

    Raises:
        LogParseError: If it cannot be opened, is empty or is no text.
    """
    try:
        raw: io.RawIOBase = _Stdin() if path == '-' else open(path, 'rb', 0)  # noqa: SIM115
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise LogParseError(f'{path}: {reason_of(error)}') from error
    stream = io.BufferedReader(raw, _BLOCK)
    try:
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(_Gunzip(stream), _BLOCK)
        head = stream.peek(_HEAD)[:_HEAD]
    except (OSError, zlib.error) as error:
        stream.close()
        raise LogParseError(f'{path}: {reason_of(error)}') from error
    problem = _problem_of(head)
    if problem:
        stream.close()
        raise LogParseError(f'{path}: {problem}')
    return stream


def is_regular(path: str) -> bool:
    """Return whether a path is a file that can be opened again: no pipe, no device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_checkpoint(path: str) -> bool:
    """Return whether a file begins as a checkpoint does; what is piped in does not."""
    if not is_regular(path):
        return False  # to look at a pipe would take its first rows
    try:
        with open(path, 'rb') as file:
            return file.read(4).startswith(_CHECKPOINT)
    except (OSError, ValueError):
        return False  # to be said when it is read


def _problem_of(head: bytes) -> str | None:
    """Return why the first bytes of a file are no text, None if they are."""
    if not head:
        return 'the file is empty'
    if head.startswith(_CHECKPOINT):
        return 'a checkpoint or an archive, not a log'
    # a crash of the machine leaves a hole of zeros, which is no binary
    solid = re.sub(rb'\0{16,}', b'', head)
    num_controls = sum(byte < 8 or 13 < byte < 27 for byte in solid)
    is_odd = num_controls > 0.04 * len(head) and _wide_encoding(head) is None
    if is_odd or head.startswith(_BINARY):
        return 'a binary file, not a log'
    return None


def reason_of(error: BaseException) -> str:
    """Return why a file cannot be read, in a few words."""
    if isinstance(error, FileNotFoundError):
        return 'no such file or directory'
    if isinstance(error, PermissionError):
        return 'no permission to read it'
    if isinstance(error, IsADirectoryError):
        return 'a directory'
    if isinstance(error, zlib.error):
        return f'a damaged gzip ({error})'
    return str(getattr(error, 'strerror', None) or error) or type(error).__name__


def read_blocks(stream: BinaryIO) -> Iterator[Lines]:
    """Yield all lines of ``stream`` in blocks of about a megabyte.

    A gzip that ends too early ends the text there.
    """
    first, rest, returns_end_lines = 1, b'', None
    for data in _read_utf8(stream):
        if returns_end_lines is None:
            has_ends = b'\n' in data.replace(b'\r\n', b'\n')
            returns_end_lines = b'\r' in data[:-1] and not has_ends
        if returns_end_lines:
            data = data.replace(b'\r', b'\n')
        whole, end, tail = data.rpartition(b'\n')
        if end:
            texts = _to_texts(rest + whole)
            yield Lines(first, texts)
            first, rest = first + len(texts), tail
        elif len(rest) < MAX_LINE:
            rest += data
    yield Lines(first, _to_texts(rest) if rest else [], True, bool(rest))


def _read_utf8(stream: BinaryIO) -> Iterator[bytes]:
    encoding, decoder = None, None
    is_first = True
    while True:
        try:
            data = stream.read(_BLOCK)
        except (OSError, zlib.error):
            return
        if not data:
            return
        if is_first:
            is_first, encoding = False, _wide_encoding(data[:_HEAD])
            if encoding:
                decoder = codecs.getincrementaldecoder(encoding)('replace')
            elif data.startswith(codecs.BOM_UTF8):
                data = data[3:]
        yield decoder.decode(data).encode('utf-8', 'replace') if decoder else data


def _to_texts(data: bytes) -> list[str]:
    if b'\r' in data:
        data = data.replace(b'\r\n', b'\n')
        data = data[:-1] if data.endswith(b'\r') else data
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError:
        text = '\n'.join(_decode(line) for line in data.split(b'\n'))
    return text.replace('\0', '').split('\n')


def _decode(line: bytes) -> str:
    try:
        return line.decode('utf-8')
    except UnicodeDecodeError:
        return line.decode('latin-1')  # never fails, and the numbers are ASCII


def _wide_encoding(head: bytes) -> str | None:
    """Return the UTF-16 that ``head`` is in, None if it is not."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return 'utf-16'
    sample = head[: len(head) // 2 * 2]
    for encoding, zeros, letters in (
        ('utf-16-le', sample[1::2], sample[::2]),
        ('utf-16-be', sample[::2], sample[1::2]),
    ):
        if zeros and zeros.count(0) > 0.7 * len(zeros) > 7 * letters.count(0):
            return encoding
    return None
