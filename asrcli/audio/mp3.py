"""The header frame of an MP3 file, which counts its frames and what is padding.

Xing and LAME: http://gabriel.mp3-tech.org/mp3infotag.html; VBRI is Fraunhofer's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asrcli.audio.streams import ByteStream

# How far behind tags and pictures the first frame is looked for. A pipe is not held up for it.
_MAX_PEEK = 1 << 22
_MAX_PEEK_ON_PIPE = 4096
# Samples by which any decoder comes late, counted in the encoder's delay but not in its tag.
_DECODER_DELAY = 529
_MPEG_1 = 3
_RESERVED = 1
_SIDE_INFO = {(True, False): 32, (True, True): 17, (False, False): 17, (False, True): 9}


@dataclass(frozen=True, slots=True)
class Mp3Length:
    """What the header frame says.

    Attributes:
        sampling_rate: in Hz.
        num_samples: without the encoder's delay and padding.
        num_padding: samples behind them that are no audio.
    """

    sampling_rate: int
    num_samples: int
    num_padding: int

    @property
    def duration(self) -> float:
        """Seconds of audio."""
        return self.num_samples / self.sampling_rate

    @property
    def padding(self) -> range:
        """Which samples, counted from the first that is audio, are padding."""
        return range(self.num_samples, self.num_samples + self.num_padding)


def read_length(stream: ByteStream) -> Mp3Length | None:
    """Look ahead into `stream`; None where this is no MP3, or one without a header frame."""
    limit = _MAX_PEEK if stream.can_seek else _MAX_PEEK_ON_PIPE
    head = stream.peek(10)
    offset = 0
    if head[:3] == b"ID3" and len(head) == 10:
        offset = 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])
    elif not _is_layer_3(head):
        return None
    if offset + 256 > limit:
        return None
    return _parse(stream.peek(offset + 256)[offset:])


def _is_layer_3(frame: bytes) -> bool:
    return len(frame) >= 4 and frame[0] == 0xFF and frame[1] & 0xE6 == 0xE2


def _parse(frame: bytes) -> Mp3Length | None:
    if len(frame) < 256 or not _is_layer_3(frame):
        return None
    version, rate_index, mono = frame[1] >> 3 & 3, frame[2] >> 2 & 3, frame[3] >> 6 == 3
    if version == _RESERVED or rate_index == 3:
        return None
    rate = (44100, 48000, 32000)[rate_index] >> {3: 0, 2: 1, 0: 2}[version]
    frame_size = 1152 if version == _MPEG_1 else 576
    tag = frame[4 + _SIDE_INFO[version == _MPEG_1, mono] :]
    if tag[:4] in (b"Xing", b"Info") and tag[7] & 1:
        (num_frames,) = struct.unpack(">I", tag[8:12])
        return _without_padding(rate, num_frames * frame_size, tag)
    if frame[36:40] == b"VBRI":
        (num_frames,) = struct.unpack(">I", frame[50:54])
        return Mp3Length(rate, num_frames * frame_size, 0)
    return None


def _without_padding(rate: int, num_samples: int, tag: bytes) -> Mp3Length:
    """Take off the delay and padding that LAME, and FFmpeg after it, write into the tag."""
    has_all_fields = tag[7] & 15 == 15
    if not has_all_fields or tag[120:124] not in (b"LAME", b"Lavf", b"Lavc"):
        return Mp3Length(rate, num_samples, 0)
    packed = int.from_bytes(tag[141:144], "big")
    delay, padding = packed >> 12, packed & 0xFFF
    num_padding = max(0, padding - _DECODER_DELAY)
    return Mp3Length(rate, max(0, num_samples - delay - _DECODER_DELAY - num_padding), num_padding)
