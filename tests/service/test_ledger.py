"""The ledger's contract: every check on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placewire.model.errors import Unusable
from placewire.serve import Unavailable
from placewire.serve.auth import make_key
from placewire.serve.ledger import (
    Account,
    Ledger,
    ResultEntry,
    SubscriptionChange,
    deliveries,
    open_ledger,
)
from placewire.serve.ledger.rows import (
    DELIVERED,
    FAILED,
    GONE,
    DeliveryReport,
    NextStep,
    WebhookRow,
    WebhookSettings,
)
from placewire.storage.journal import Note
from postgres_server import PostgresServer

URL = "https://receiver.example/hook"
ODD = ["ü ñ 漢字 🗽", "a'b\"c", "%s ? ; --", "\u2028\u202e", "a\\b", "x" * 256]

Reopen = Callable[[], Ledger]


class Shelf:
    """A ledger that can be closed and opened again, as after a restart."""

    def __init__(self, address: str | Path) -> None:
        self.address = address
        self.ledger = open_ledger(address)

    def again(self) -> Ledger:
        self.ledger.close()
        self.ledger = open_ledger(self.address)
        return self.ledger


@pytest.fixture(params=["sqlite", "postgres"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    address: str | Path = tmp_path / "ledger.sqlite"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        address = server.make_database(f"ledger_{abs(hash(tmp_path))}")
    found = Shelf(address)
    yield found
    found.ledger.close()


@pytest.fixture
def ledger(shelf: Shelf) -> Ledger:
    return shelf.ledger


def subscribe(seq: int, name: str, owner: str = "ann", kind: str = "boolean") -> SubscriptionChange:
    body = json.dumps({"type": "subscribe", "id": name, "kind": kind})
    return SubscriptionChange(seq, name, owner, False, kind, body, 1_000)


def unsubscribe(seq: int, name: str, owner: str = "ann") -> SubscriptionChange:
    return SubscriptionChange(seq, name, owner, ends=True)


def match(seq: int, name: str, **more: Any) -> bytes:
    told = {"seq": seq, "type": "match", "subscription": name, "object": f"o{seq}", **more}
    return json.dumps(told, ensure_ascii=False).encode()


def of(name: str, owner: str = "ann") -> Account:
    return Account(name, owner)


def record(ledger: Ledger, batch: int, *lines: bytes, at_us: int = 10) -> list[ResultEntry]:
    return ledger.record(batch, lines, [], at_us) or []


def filled(ledger: Ledger, results: int, name: str = "s", at_us: int = 10) -> None:
    ledger.apply([subscribe(0, name)], [], 1)
    record(ledger, 0, *[match(seq, name) for seq in range(1, results + 1)], at_us=at_us)


# Subscriptions and replies.


def test_changes_are_applied_once_however_often_they_come(shelf: Shelf) -> None:
    changes = [subscribe(1, "s"), subscribe(2, "t"), unsubscribe(3, "t"), subscribe(4, "s")]
    for _ in range(2):
        shelf.ledger.apply(changes, [Note(1, 1, "ann", "key", 5, {"seq": 1})], 5)
        assert shelf.ledger.applied_seq == 5
    held = shelf.again().find("s")
    assert held is not None
    assert (held.seq, held.owned_seq, held.ended_seq) == (4, 1, None)
    ended = shelf.ledger.find("t")
    assert ended is not None
    assert ended.ended_seq == 3
    assert shelf.ledger.reply_of("ann", "key") == {"seq": 1}
    assert shelf.ledger.reply_of("bob", "key") is None
    listed = shelf.ledger.list_subscriptions(None, "", 10)
    assert [one.id for one in listed if one.ended_seq is None] == ["s"]


def test_an_older_change_does_not_undo_a_newer_one(ledger: Ledger) -> None:
    ledger.apply([subscribe(5, "s", kind="nearest")], [], 6)
    ledger.apply([subscribe(2, "s"), unsubscribe(3, "s")], [], 6)
    held = ledger.find("s")
    assert held is not None
    assert (held.seq, held.kind, held.ended_seq) == (5, "nearest", None)


def test_lists_are_by_owner_and_in_pages(ledger: Ledger) -> None:
    names = [f"s{number:03}" for number in range(30)]
    ledger.apply([subscribe(i, n, "ann" if i % 3 else "bob") for i, n in enumerate(names)], [], 30)
    assert [one.id for one in ledger.list_subscriptions(None, "", 100)] == names
    assert [one.id for one in ledger.list_subscriptions("bob", "", 3)] == names[:9:3]
    assert [one.id for one in ledger.list_subscriptions("bob", names[6], 2)] == [
        names[9],
        names[12],
    ]
    assert ledger.find_all([*names, "none"]).keys() == set(names)


def test_many_names_are_found_at_once(ledger: Ledger) -> None:
    names = [f"s{number}" for number in range(1_000)]
    ledger.apply([subscribe(i, name) for i, name in enumerate(names)], [], 1_000)
    assert len(ledger.find_all(names)) == 1_000


# Results.


def test_numbers_have_no_gaps_and_batches_count_once(shelf: Shelf) -> None:
    shelf.ledger.apply([subscribe(0, "s"), subscribe(1, "t")], [], 2)
    first = record(shelf.ledger, 0, match(2, "s"), match(2, "t"), match(3, "s"))
    assert [(e.position, e.subscription, e.number) for e in first] == [
        (1, "s", 1), (2, "t", 1), (3, "s", 2),
    ]  # fmt: skip
    ledger = shelf.again()
    assert ledger.batch == 0
    assert record(ledger, 0, match(2, "s"), match(2, "t"), match(3, "s")) == []
    second = record(ledger, 1, match(4, "s"))
    assert [(e.position, e.number) for e in second] == [(4, 3)]
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == [1, 2, 3]
    assert [e.position for e in ledger.results_after("ann", 1, 2)] == [2, 3]
    assert ledger.results_of(of("s"), 1, 1) == first[2:]
    assert ledger.position == 4


def test_a_batch_that_breaks_off_leaves_nothing(shelf: Shelf) -> None:
    shelf.ledger.apply([subscribe(0, "s")], [], 1)

    def lines() -> Iterator[bytes]:
        yield match(1, "s")
        raise OSError("the outbox cannot be read")

    with pytest.raises(OSError, match="outbox"):
        shelf.ledger.record(0, lines(), [], 10)

    def letters() -> Iterator[dict[str, Any]]:
        yield {"seq": 7, "error": "e", "event": "x"}
        raise OSError("the outbox cannot be read")

    with pytest.raises(OSError, match="outbox"):
        shelf.ledger.record(0, [match(1, "s")], letters(), 10)
    ledger = shelf.again()
    assert (ledger.batch, ledger.position) == (-1, 0)
    assert ledger.results_of(of("s"), 0, 10) == []
    assert ledger.dead_letters(-1, 10) == []
    assert [e.number for e in record(ledger, 0, match(1, "s"))] == [1]


def test_a_result_is_theirs_who_had_the_id_at_its_event(shelf: Shelf) -> None:
    """However late it comes: the id has gone from ann to bob and back meanwhile."""
    changes = [
        subscribe(0, "s", "ann"),
        unsubscribe(3, "s", "ann"),
        subscribe(4, "s", "bob"),
        unsubscribe(7, "s", "bob"),
        subscribe(8, "s", "ann"),
    ]
    shelf.ledger.apply(changes[:1], [], 1)
    record(shelf.ledger, 0, match(1, "s"))
    shelf.ledger.apply(changes[1:], [], 9)
    ledger = shelf.again()
    ledger.apply(changes, [], 9)
    late = [match(seq, "s") for seq in (2, 3, 5, 6, 9)]
    entries = record(ledger, 1, *late, match(9, "unknown"))
    assert [(e.seq, e.owner, e.number) for e in entries] == [
        (2, "ann", 2), (3, "ann", 3), (5, "bob", 1), (6, "bob", 2), (9, "ann", 4),
    ]  # fmt: skip
    assert ledger.counts()["strays"] == 1
    ledger = shelf.again()
    assert [e.seq for e in ledger.results_of(of("s"), 0, 10)] == [1, 2, 3, 9]
    assert [e.seq for e in ledger.results_of(of("s", "bob"), 0, 10)] == [5, 6]
    assert [e.seq for e in ledger.results_after("bob", 0, 10)] == [5, 6]
    held = [ledger.find("s", owner) for owner in ("ann", "bob", None, "cy")]
    assert [one and (one.owner, one.numbers, one.ended_seq) for one in held] == [
        ("ann", 4, None), ("bob", 2, 7), ("ann", 4, None), None,
    ]  # fmt: skip
    assert [one.owner for one in ledger.list_subscriptions(None, "", 10)] == ["ann"]
    assert [one.id for one in ledger.list_subscriptions("bob", "", 10)] == ["s"]


def test_what_a_former_owner_is_told_at_the_event_of_the_next_is_theirs(ledger: Ledger) -> None:
    """Reports that are due there are the old one's, what the new one has already is its own."""
    ledger.apply([subscribe(0, "s", "ann", "trending"), unsubscribe(3, "s")], [], 4)
    ledger.apply([subscribe(4, "s", "bob", "nearest")], [], 5)
    report = {"seq": 4, "type": "report", "subscription": "s", "at": "2026-03-01T12:00:00Z"}
    added = [{"object": "o", "distance_m": 1.0}]
    update = {"seq": 4, "type": "update", "subscription": "s", "add": added, "drop": []}
    entries = record(
        ledger, 0, json.dumps(report | {"terms": []}).encode(), json.dumps(update).encode()
    )
    assert [(e.type, e.owner, e.number) for e in entries] == [
        ("report", "ann", 1), ("update", "bob", 1),
    ]  # fmt: skip
    standing = [one.standing for name in ("ann", "bob") if (one := ledger.find("s", name))]
    assert [json.loads(one or "") for one in standing] == [
        {"at": report["at"], "terms": []}, {"objects": added},
    ]  # fmt: skip


def test_past_owners_are_deleted_when_no_result_can_need_them(ledger: Ledger) -> None:
    ledger.apply([subscribe(0, "s", "ann"), unsubscribe(3, "s"), subscribe(4, "s", "bob")], [], 5)
    record(ledger, 0, match(1, "s"))

    def past_owners() -> list[tuple[int, str]]:
        rows = ledger.database.read("SELECT first_seq, owner FROM tenure ORDER BY first_seq")
        return [(seq, owner) for seq, owner in rows]

    ledger.purge_ended(3, event_us=100)
    assert past_owners() == [(0, "ann"), (4, "bob")]
    ledger.purge_ended(5, event_us=100)
    assert past_owners() == [(4, "bob")]
    assert [e.owner for e in record(ledger, 1, match(9, "s"))] == ["bob"]
    ledger.apply([unsubscribe(10, "s", "bob")], [], 11)
    ledger.purge_before(20, 30)
    ledger.purge_ended(11, event_us=100)
    assert past_owners() == []


def test_ranked_lists_stand(ledger: Ledger) -> None:
    ledger.apply([subscribe(0, "n", kind="nearest")], [], 1)
    update = {"seq": 1, "type": "update", "subscription": "n", "drop": []}
    one = update | {"add": [{"object": "a", "distance_m": 5.0}]}
    two = update | {"seq": 2, "add": [{"object": "b", "distance_m": 1.0}]}
    record(ledger, 0, json.dumps(one).encode(), json.dumps(two).encode())
    held = ledger.find("n")
    assert held is not None
    assert held.standing is not None
    assert [x["object"] for x in json.loads(held.standing)["objects"]] == ["b", "a"]


def test_old_results_are_forgotten_and_counted(ledger: Ledger) -> None:
    ledger.apply([subscribe(0, "s")], [Note(0, 1, "ann", "old", 5, {"seq": 0})], 1)
    record(ledger, 0, match(1, "s"), match(2, "s"), at_us=10)
    record(ledger, 1, match(3, "s"), at_us=20)
    assert ledger.purge_before(15, 30) == 2
    assert ledger.purge_before(15, 30) == 0
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == [3]
    assert ledger.counts()["forgotten"] == 2
    assert ledger.reply_of("ann", "old") is None
    assert [e.number for e in record(ledger, 2, match(4, "s"))] == [4]


def test_ended_subscriptions_are_forgotten_with_what_is_old(ledger: Ledger) -> None:
    kept = [
        subscribe(0, "live"),
        subscribe(1, "ended"),
        subscribe(2, "later"),
        subscribe(3, "read"),
    ]
    soon = subscribe(4, "expired")._replace(expires_us=50)
    ledger.apply([*kept, soon, soon._replace(seq=5, id="not yet", expires_us=500)], [], 6)
    record(ledger, 0, match(5, "read"))
    ends = [unsubscribe(6, "ended"), unsubscribe(7, "read"), unsubscribe(20, "later")]
    ledger.apply(ends, [], 21)
    ledger.purge_ended(10, event_us=100)
    assert [one.id for one in ledger.list_subscriptions(None, "", 10)] == [
        "later",
        "live",
        "not yet",
        "read",
    ]
    # One whose id comes again begins anew.
    ledger.apply([subscribe(30, "ended")], [], 31)
    assert [e.number for e in record(ledger, 1, match(31, "ended"))] == [1]


@pytest.mark.parametrize("name", ODD)
def test_odd_characters_come_back_as_they_were(shelf: Shelf, name: str) -> None:
    shelf.ledger.apply([subscribe(0, name, name[:64])], [Note(0, 1, name, name, 1, {"x": name})], 1)
    line = match(1, name, text="\\u0000 " + name)
    (entry,) = record(shelf.ledger, 0, line)
    ledger = shelf.again()
    assert ledger.results_of(of(name, name[:64]), 0, 1) == [entry]
    assert entry.body == line
    held = ledger.find(name)
    assert held is not None
    assert (held.id, held.owner) == (name, name[:64])
    assert ledger.reply_of(name, name) == {"x": name}


def test_dead_letters_may_have_anything_in_them(ledger: Ledger) -> None:
    letters = [
        {"seq": 3, "error": "e\x00", "event": "\x00 ü"},
        {"seq": 4, "error": "", "event": ""},
    ]
    ledger.record(0, [], letters, 10)
    found = ledger.dead_letters(-1, 10)
    assert [(one["seq"], one["event"]) for one in found] == [(3, "\ufffd ü"), (4, "")]
    assert ledger.dead_letters(3, 10) == found[1:]


def test_keys_are_kept_once_by_name(shelf: Shelf) -> None:
    _, key = make_key("ann", ("publish", "admin"))
    assert shelf.ledger.add_key(key)
    assert not shelf.ledger.add_key(key)
    assert shelf.again().all_keys() == [key]
    assert shelf.ledger.end_key("ann")
    assert not shelf.ledger.end_key("ann")
    assert shelf.ledger.all_keys() == []


def test_a_ledger_of_another_version_is_refused(shelf: Shelf) -> None:
    with shelf.ledger.database.writing() as cursor:
        cursor.execute("UPDATE meta SET value = 999 WHERE name = 'version'")
    with pytest.raises(Unusable, match="needs version"):
        open_ledger(shelf.address)


# Webhooks.


def hook(ledger: Ledger, name: str = "s", owner: str = "ann", **settings: Any) -> bool | None:
    return ledger.deliveries.put(of(name, owner), WebhookSettings(URL, **settings), "t0ken", "made")


def found(ledger: Ledger, name: str = "s") -> WebhookRow:
    webhook = ledger.deliveries.find(of(name))
    assert webhook is not None
    return webhook


def advance(ledger: Ledger, report: DeliveryReport | None = None, now_us: int = 1_000) -> NextStep:
    return ledger.deliveries.advance([(of("s"), report)], now_us)[0]


def span(step: NextStep) -> tuple[int, int] | None:
    return None if step.delivery is None else (step.delivery.first, step.delivery.last)


def counts(ledger: Ledger) -> tuple[int, int, int, int]:
    webhook, held = found(ledger), ledger.find("s")
    assert held is not None
    pending = held.numbers - webhook.number
    return webhook.delivered, pending, webhook.dropped, webhook.failed


def test_a_webhook_gets_everything_that_is_kept_once(shelf: Shelf) -> None:
    filled(shelf.ledger, 3)
    assert hook(shelf.ledger) is True
    assert shelf.ledger.deliveries.active() == [(of("s"), True)]
    step = advance(shelf.ledger)
    assert span(step) == (1, 3)
    record(shelf.ledger, 1, match(9, "s"))
    # A crash before the report: the same parcel under the same id.
    repeated = advance(shelf.again())
    assert repeated == step
    assert repeated.delivery is not None
    following = advance(shelf.ledger, DeliveryReport(repeated.delivery, DELIVERED))
    assert span(following) == (4, 4)
    assert following.delivery is not None
    assert following.delivery.id != repeated.delivery.id
    # A report that comes twice counts once.
    assert advance(shelf.ledger, DeliveryReport(repeated.delivery, DELIVERED)) == following
    assert advance(shelf.ledger, DeliveryReport(following.delivery, DELIVERED)) == NextStep()
    assert counts(shelf.again()) == (4, 0, 0, 0)
    assert shelf.ledger.counts()["webhook_delivered"] == 4
    assert shelf.ledger.deliveries.active() == [(of("s"), False)]


def test_a_webhook_may_begin_anywhere(ledger: Ledger) -> None:
    filled(ledger, 5)
    hook(ledger, after=3)
    assert span(advance(ledger)) == (4, 5)
    # Changed, it goes on where it was; with a place to begin it begins there, under new ids.
    assert hook(ledger, secret="another-secret-0") is False
    assert span(advance(ledger)) == (4, 5)
    assert found(ledger).secret == "another-secret-0"
    assert ledger.deliveries.put(of("s"), WebhookSettings(URL, after=0), "t1", "x") is False
    step = advance(ledger)
    assert step.delivery is not None
    assert (step.delivery.id, step.delivery.secret) == ("t1-1-5", "another-secret-0")


def test_only_the_owner_of_a_live_subscription_has_a_webhook(ledger: Ledger) -> None:
    filled(ledger, 1)
    assert hook(ledger, owner="bob") is None
    assert hook(ledger, "unknown") is None
    hook(ledger)
    ledger.apply([unsubscribe(8, "s")], [], 9)
    assert hook(ledger) is None
    # What came before the end is still delivered, when another has the id too.
    assert span(advance(ledger)) == (1, 1)
    ledger.apply([subscribe(10, "s", "bob")], [], 11)
    assert hook(ledger, owner="bob") is True
    record(ledger, 1, match(7, "s"), match(12, "s"))
    delivery = advance(ledger).delivery
    assert delivery is not None
    assert span(advance(ledger, DeliveryReport(delivery, DELIVERED))) == (2, 2)
    steps = ledger.deliveries.advance([(of("s", "bob"), None)], 1_000)
    assert [span(step) for step in steps] == [(1, 1)]
    assert ledger.deliveries.end(of("s", "bob"))
    assert found(ledger).delivered == 1


def test_a_throttle_leaves_out_and_counts(ledger: Ledger) -> None:
    filled(ledger, 3)
    hook(ledger, throttle_us=500)
    step = advance(ledger, now_us=1_000)
    assert span(step) == (3, 3)
    assert counts(ledger) == (0, 1, 2, 0)
    assert step.delivery is not None
    assert advance(ledger, DeliveryReport(step.delivery, DELIVERED), 2_000) == NextStep()
    record(ledger, 1, *[match(seq, "s") for seq in range(4, 9)])
    assert advance(ledger, now_us=2_499) == NextStep(wait_us=2_500)
    assert span(advance(ledger, now_us=2_500)) == (8, 8)
    assert counts(ledger) == (1, 1, 6, 0)
    assert ledger.counts()["throttled"] == 6
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == list(range(1, 9))


def test_a_digest_waits_and_sends_all(ledger: Ledger) -> None:
    filled(ledger, 2, at_us=1_000)
    hook(ledger, digest_us=500)
    assert advance(ledger, now_us=1_200) == NextStep(wait_us=1_500)
    record(ledger, 1, match(9, "s"), at_us=1_400)
    assert span(advance(ledger, now_us=1_500)) == (1, 3)


def test_one_body_has_so_much(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(ledger, 10)
    hook(ledger)
    monkeypatch.setattr(deliveries, "MAX_RESULTS", 4)
    step = advance(ledger)
    assert span(step) == (1, 4)
    assert step.delivery is not None
    monkeypatch.setattr(deliveries, "MAX_CHARACTERS", 2 * len(match(5, "s")) + 1)
    step = advance(ledger, DeliveryReport(step.delivery, DELIVERED))
    assert span(step) == (5, 6)
    assert step.delivery is not None
    monkeypatch.setattr(deliveries, "MAX_CHARACTERS", 1)
    assert span(advance(ledger, DeliveryReport(step.delivery, DELIVERED))) == (7, 7)


def test_what_fails_is_tried_again_then_given_up_then_sent_by_hand(shelf: Shelf) -> None:
    filled(shelf.ledger, 2)
    hook(shelf.ledger)
    delivery = advance(shelf.ledger).delivery
    assert delivery is not None
    again = DeliveryReport(delivery, FAILED, "replied 500", 3_000)
    assert advance(shelf.ledger, again, 2_000) == NextStep(wait_us=3_000)
    assert advance(shelf.again(), now_us=2_999) == NextStep(wait_us=3_000)
    second = advance(shelf.ledger, now_us=3_000).delivery
    assert second == delivery._replace(attempts=1)
    record(shelf.ledger, 1, match(9, "s"))
    following = advance(shelf.ledger, DeliveryReport(second, FAILED, "replied 500"), 4_000)
    assert span(following) == (3, 3)
    assert counts(shelf.ledger) == (0, 1, 0, 2)
    (dead,) = shelf.ledger.deliveries.dead(of("s"), 0, 10)
    assert (dead.first_number, dead.last_number, dead.attempts) == (1, 2, 2)
    assert following.delivery is not None
    assert advance(shelf.ledger, DeliveryReport(following.delivery, DELIVERED), 5_000) == NextStep()
    # By hand: once, and if that fails too it stays where it is.
    for outcome in (FAILED, DELIVERED):
        assert shelf.ledger.deliveries.retry_dead(of("s")) == 1
        assert shelf.again().deliveries.active() == [(of("s"), True)]
        retried = advance(shelf.ledger, now_us=6_000).delivery
        assert retried is not None
        assert (retried.id, retried.dead) == (delivery.id, True)
        assert (
            advance(shelf.ledger, DeliveryReport(retried, outcome, "replied 404"), 6_000)
            == NextStep()
        )
    assert shelf.ledger.deliveries.dead(of("s"), 0, 10) == []
    assert counts(shelf.ledger) == (3, 0, 0, 0)
    assert shelf.ledger.deliveries.retry_dead(of("s")) == 0


def test_a_receiver_may_end_it(ledger: Ledger) -> None:
    filled(ledger, 1)
    hook(ledger)
    delivery = advance(ledger).delivery
    assert delivery is not None
    assert advance(ledger, DeliveryReport(delivery, GONE, "replied 410")) == NextStep(known=False)
    assert found(ledger).ended == "replied 410"
    assert ledger.deliveries.active() == []
    # Made anew, it goes on where it was.
    assert hook(ledger) is False
    assert span(advance(ledger)) == (1, 1)


def test_an_ended_webhook_leaves_nothing_behind(ledger: Ledger) -> None:
    filled(ledger, 2)
    hook(ledger)
    delivery = advance(ledger).delivery
    assert delivery is not None
    advance(ledger, DeliveryReport(delivery, FAILED, "replied 500"))
    assert not ledger.deliveries.end(of("s", "bob"))
    assert ledger.deliveries.end(of("s"))
    assert not ledger.deliveries.end(of("s"))
    assert ledger.deliveries.dead(of("s"), 0, 10) == []
    assert ledger.deliveries.count() == {
        "webhooks": 0, "pending": 0, "dead_deliveries": 0, "dead_results": 0,
    }  # fmt: skip
    assert advance(ledger, DeliveryReport(delivery, DELIVERED)) == NextStep(known=False)


def test_what_waits_too_long_is_given_up_and_kept_as_long_again(ledger: Ledger) -> None:
    filled(ledger, 2, at_us=10)
    hook(ledger)
    delivery = advance(ledger).delivery
    record(ledger, 1, match(9, "s"), at_us=30)
    assert ledger.purge_before(20, 40) == 0
    (dead,) = ledger.deliveries.dead(of("s"), 0, 10)
    assert (dead.first_number, dead.last_number, dead.at_us) == (1, 2, 40)
    assert "longer than results are kept" in dead.error
    assert counts(ledger) == (0, 1, 0, 2)
    assert delivery is not None
    assert span(advance(ledger, DeliveryReport(delivery, FAILED, "replied 500", 99), 50)) == (3, 3)
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == [1, 2, 3]
    assert ledger.purge_before(29, 50) == 0
    assert ledger.purge_before(41, 60) == 2
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == [3]


def test_a_long_one_that_was_given_up_is_sent_in_parts(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(ledger, 5)
    hook(ledger)
    ledger.purge_before(20, 40)
    monkeypatch.setattr(deliveries, "MAX_RESULTS", 2)
    ledger.deliveries.retry_dead(of("s"))
    sent = []
    step = advance(ledger)
    while step.delivery is not None:
        sent.append(span(step))
        step = advance(ledger, DeliveryReport(step.delivery, DELIVERED))
    assert sent == [(1, 2), (3, 4), (5, 5)]
    assert counts(ledger) == (5, 0, 0, 0)


# PostgreSQL alone.


def test_a_server_that_comes_back_is_used_again(postgres: PostgresServer) -> None:
    ledger = open_ledger(postgres.make_database("restarted"))
    ledger.apply([subscribe(0, "s")], [], 1)
    record(ledger, 0, match(1, "s"))
    postgres.stop()
    try:
        with pytest.raises(Unavailable, match="PostgreSQL"):
            ledger.find("s")
        with pytest.raises(Unavailable, match="PostgreSQL"):
            record(ledger, 1, match(2, "s"))
    finally:
        postgres.start()
    assert [e.number for e in record(ledger, 1, match(2, "s"))] == [2]
    assert [e.number for e in ledger.results_of(of("s"), 0, 10)] == [1, 2]
    ledger.close()


def test_a_server_that_is_not_there_is_said(postgres: PostgresServer) -> None:
    with pytest.raises(Unusable, match="cannot be reached"):
        open_ledger("postgresql://tests@127.0.0.1:1/none")
    with pytest.raises(Unusable, match="cannot be reached"):
        open_ledger(postgres.url("no-such-database"))
