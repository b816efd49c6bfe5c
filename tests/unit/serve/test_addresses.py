"""Public and private addresses of webhooks, and pauses between attempts."""

from __future__ import annotations

import pytest

from placewire.serve.webhooks.dispatcher import RetryPolicy
from placewire.serve.webhooks.sender import is_public

# Never inwards.

INWARDS = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "::",
    "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "fec0::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1",
    "nonsense",
]  # fmt: skip
OUTWARDS = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1"]


@pytest.mark.parametrize("address", INWARDS)
def test_no_address_of_this_net_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTWARDS)
def test_addresses_of_the_net_are_public(address: str) -> None:
    assert is_public(address)


def test_pauses_grow_up_to_a_day() -> None:
    retries = RetryPolicy(jitter=0.0)
    pauses = [retries.pause_s(attempts) for attempts in range(1, 12)]
    known = [pause for pause in pauses if pause is not None]
    assert len(known) == 11
    assert known[:3] == [5.0, 15.0, 45.0]
    assert 20 * 3600 < sum(known) < 26 * 3600
    assert retries.pause_s(12) is None
    spread = {RetryPolicy().pause_s(1) for _ in range(20)}
    assert len(spread) > 1
    assert all(pause is not None and 4.0 <= pause <= 6.0 for pause in spread)
