"""SipHash in plain Python, written from its definition."""

from __future__ import annotations

K0, K1 = 0x0706050403020100, 0x0F0E0D0C0B0A0908
MASK = (1 << 64) - 1


def siphash(data: bytes, k0: int, k1: int, word_rounds: int, last_rounds: int) -> int:
    """SipHash as its paper defines it."""
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def half_round(lanes: tuple[int, int, int, int], s: int, t: int) -> None:
        a, b, c, d = lanes
        v[a] = (v[a] + v[b]) & MASK
        v[c] = (v[c] + v[d]) & MASK
        v[b] = ((v[b] << s | v[b] >> (64 - s)) & MASK) ^ v[a]
        v[d] = ((v[d] << t | v[d] >> (64 - t)) & MASK) ^ v[c]
        v[a] = (v[a] << 32 | v[a] >> 32) & MASK

    def mix(rounds: int) -> None:
        for _ in range(rounds):
            half_round((0, 1, 2, 3), 13, 16)
            half_round((2, 1, 0, 3), 17, 21)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        mix(word_rounds)
        v[0] ^= word
    v[2] ^= 0xFF
    mix(last_rounds)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def siphash13(data: bytes, k0: int = K0, k1: int = K1) -> int:
    return siphash(data, k0, k1, 1, 3)
