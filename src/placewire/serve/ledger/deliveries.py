"""Webhooks in the ledger: where results go, how far that is, and what was given up.

Before a body goes out, the ledger knows which results are in it, so that one that is repeated
after a crash is the same. What was sent moves the cursor, in the same transaction as the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placewire.serve.ledger.database import Cursor, Database, add_meta
from placewire.serve.ledger.rows import (
    DELIVERED,
    FAILED,
    GONE,
    Account,
    DeadDelivery,
    Parcel,
    Report,
    Step,
    Webhook,
    Wish,
)

WEBHOOK = ", ".join(Webhook._fields)
DEAD = ", ".join(DeadDelivery._fields)
MOST_RESULTS = 500  # in one body
MOST_CHARACTERS = 1 << 20  # of the results in one body, if it has more than one
OF_ACCOUNT = "WHERE subscription = ? AND owner = ?"
OF_FOLIO = "WHERE folio = (SELECT folio FROM subscription WHERE id = ? AND owner = ?)"
TOO_OLD = "waited longer than results are kept"


class Deliveries:
    """The webhooks of a ledger."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def find_all(self, names: Sequence[str]) -> dict[Account, Webhook]:
        """The webhooks of some ids, whosever they are."""
        if not names:
            return {}
        marks = ", ".join("?" * len(names))
        rows = self.database.read(
            f"SELECT {WEBHOOK} FROM delivery WHERE subscription IN ({marks})", names
        )
        return {Account(*row[:2]): Webhook(*row) for row in rows}

    def find(self, account: Account) -> Webhook | None:
        return self.find_all([account.subscription]).get(account)

    def put(self, account: Account, wish: Wish, token: str, secret: str) -> bool | None:
        """Make or replace a webhook; true if it is new, None if the owner has no such subscription.

        `token` and `secret` are for a new one.
        """
        with self.database.writing() as cursor:
            cursor.execute(
                "SELECT numbers FROM subscription WHERE id = ? AND owner = ? AND ended_seq IS NULL",
                account,
            )
            row = cursor.fetchone()
            if row is None:
                return None
            numbers = int(row[0])
            former = read_webhook(cursor, account)
            if former is None:
                begin = first_kept(cursor, account, wish.after or 0, numbers)
                made = Webhook(
                    *account, token, wish.url, wish.secret or secret, wish.throttle_us,
                    wish.digest_us, begin, begin, 0, 0, 0, 0, 0, 0, "", "",
                )  # fmt: skip
                write_webhook(cursor, made)
                return True
            number, taken = former.number, former.taken
            if wish.after is not None:
                number = taken = wish.after
                add_meta(cursor, Counter(webhook_left=max(number - former.number, 0)))
                # It begins anew, and so does what it counts.
                former = former._replace(token=token, delivered=0, dropped=0, failed=0)
            kept = first_kept(cursor, account, number, numbers)
            write_webhook(
                cursor,
                former._replace(
                    url=wish.url,
                    secret=wish.secret or former.secret,
                    throttle_us=wish.throttle_us,
                    digest_us=wish.digest_us,
                    number=kept,
                    taken=max(taken, kept),
                    dropped=former.dropped + kept - number,
                    attempts=0,
                    next_us=0,
                    error="",
                    ended="",
                ),
            )
        return False

    def end(self, account: Account) -> bool:
        """Forget a webhook; what it had not delivered stays in the ledger."""
        with self.database.writing() as cursor:
            return end_webhook(cursor, account)

    def active(self) -> list[tuple[Account, bool]]:
        """All webhooks that have not ended, and whether something waits for them."""
        rows = self.database.read(
            "SELECT d.subscription, d.owner, s.numbers > d.number OR EXISTS"
            " (SELECT 1 FROM dead_delivery x WHERE x.subscription = d.subscription"
            " AND x.owner = d.owner AND x.again = 1) FROM delivery d"
            " JOIN subscription s ON s.id = d.subscription AND s.owner = d.owner"
            " WHERE d.ended = ''"
        )
        return [(Account(name, owner), bool(waits)) for name, owner, waits in rows]

    def advance(self, reports: Iterable[tuple[Account, Report | None]], now_us: int) -> list[Step]:
        """Settle what was reported of webhooks, and say what each has to do next."""
        counted: Counter[str] = Counter()
        steps = []
        with self.database.writing() as cursor:
            for account, report in reports:
                if report is not None:
                    settle(cursor, report, now_us, counted)
                steps.append(take_next(cursor, account, now_us, counted))
            add_meta(cursor, counted)
        return steps

    def dead(self, account: Account, after: int, limit: int) -> list[DeadDelivery]:
        """Deliveries of a subscription that were given up, by their first number."""
        rows = self.database.read(
            f"SELECT {DEAD} FROM dead_delivery WHERE subscription = ? AND owner = ?"
            " AND first_number > ? ORDER BY first_number, token LIMIT ?",
            (*account, after, limit),
        )
        return [DeadDelivery(*row) for row in rows]

    def try_again(self, account: Account) -> int:
        """Have all that were given up sent once more; gives how many."""
        with self.database.writing() as cursor:
            cursor.execute(f"SELECT count(*) FROM dead_delivery {OF_ACCOUNT}", account)
            found = int(cursor.fetchone()[0])
            cursor.execute(f"UPDATE dead_delivery SET again = 1 {OF_ACCOUNT}", account)
        return found

    def count(self) -> dict[str, int]:
        """How many webhooks there are, what waits for them, what was given up and is kept."""
        hooks = self.database.read(
            "SELECT count(*), coalesce(sum(s.numbers - d.number), 0) FROM delivery d"
            " JOIN subscription s ON s.id = d.subscription AND s.owner = d.owner"
            " WHERE d.ended = ''"
        )[0]
        dead = self.database.read(
            "SELECT count(*), coalesce(sum(last_number - first_number + 1), 0) FROM dead_delivery"
        )[0]
        counts = (*hooks, *dead)
        names = ("webhooks", "pending", "dead_deliveries", "dead_results")
        return {name: int(count) for name, count in zip(names, counts, strict=True)}


def read_webhook(cursor: Cursor, account: Account) -> Webhook | None:
    cursor.execute(f"SELECT {WEBHOOK} FROM delivery {OF_ACCOUNT}", account)
    row = cursor.fetchone()
    return Webhook(*row) if row else None


def write_webhook(cursor: Cursor, webhook: Webhook) -> None:
    marks = ", ".join("?" * len(Webhook._fields))
    sets = ", ".join(f"{name} = excluded.{name}" for name in Webhook._fields[2:])
    cursor.execute(
        f"INSERT INTO delivery ({WEBHOOK}) VALUES ({marks})"
        f" ON CONFLICT (subscription, owner) DO UPDATE SET {sets}",
        webhook,
    )


def first_kept(cursor: Cursor, account: Account, after: int, numbers: int) -> int:
    """A cursor from `after` on before which nothing is kept any more."""
    cursor.execute(f"SELECT min(number) FROM result {OF_FOLIO} AND number > ?", (*account, after))
    row = cursor.fetchone()
    return int(row[0]) - 1 if row[0] is not None else max(numbers, after)


def read_numbers(cursor: Cursor, account: Account) -> int:
    """How many results an account has had."""
    cursor.execute("SELECT numbers FROM subscription WHERE id = ? AND owner = ?", account)
    return int(cursor.fetchone()[0])


def end_webhook(cursor: Cursor, account: Account) -> bool:
    """Drop a webhook with what it has given up; false if there is none."""
    webhook = read_webhook(cursor, account)
    if webhook is None:
        return False
    left = read_numbers(cursor, account) - webhook.number
    add_meta(cursor, Counter(webhook_left=max(left, 0)))
    cursor.execute(f"DELETE FROM dead_delivery {OF_ACCOUNT}", account)
    cursor.execute(f"DELETE FROM delivery {OF_ACCOUNT}", account)
    return True


def settle(cursor: Cursor, report: Report, now_us: int, counted: Counter[str]) -> None:
    """Note what became of a parcel, unless its webhook has been changed meanwhile."""
    parcel = report.parcel
    webhook = read_webhook(cursor, parcel.account)
    if webhook is None:
        return
    counted["webhook_attempts"] += 1
    if report.outcome == GONE and (webhook.token, webhook.url) == (parcel.token, parcel.url):
        webhook = webhook._replace(ended=report.error)
    if parcel.dead:
        webhook = settle_dead(cursor, report, webhook, counted)
    elif (webhook.token, webhook.number + 1, webhook.taken) == (
        parcel.token, parcel.first, parcel.last,
    ):  # fmt: skip
        webhook = settle_parcel(cursor, report, webhook, now_us, counted)
    write_webhook(cursor, webhook)


def settle_parcel(
    cursor: Cursor, report: Report, webhook: Webhook, now_us: int, counted: Counter[str]
) -> Webhook:
    parcel = report.parcel
    if report.outcome == DELIVERED:
        counted["webhook_delivered"] += parcel.size
        return webhook._replace(
            number=parcel.last,
            delivered=webhook.delivered + parcel.size,
            attempts=0,
            next_us=0,
            sent_us=now_us,
            error="",
        )
    counted["webhook_failures"] += 1
    attempts = webhook.attempts + 1
    if report.outcome == FAILED and report.again_us is not None:
        return webhook._replace(attempts=attempts, next_us=report.again_us, error=report.error)
    if report.outcome == GONE:
        return webhook._replace(attempts=attempts, error=report.error)
    counted["webhook_given_up"] += parcel.size
    bury(cursor, webhook, parcel.first, parcel.last, attempts, report.error, now_us)
    return webhook._replace(
        number=parcel.last,
        failed=webhook.failed + parcel.size,
        attempts=0,
        next_us=0,
        error=report.error,
    )


def settle_dead(cursor: Cursor, report: Report, webhook: Webhook, counted: Counter[str]) -> Webhook:
    """What became of one that was given up before: it is delivered now, or stays as it was."""
    parcel = report.parcel
    key = (*parcel.account, parcel.token, parcel.first)
    where = f"{OF_ACCOUNT} AND token = ? AND first_number = ?"
    if report.outcome != DELIVERED:
        counted["webhook_failures"] += 1
        cursor.execute(
            f"UPDATE dead_delivery SET attempts = attempts + 1, error = ?, again = 0 {where}",
            (report.error, *key),
        )
        return webhook
    cursor.execute(f"SELECT 1 FROM dead_delivery {where}", key)
    if cursor.fetchone() is None:
        return webhook
    cursor.execute(f"DELETE FROM dead_delivery {where}", key)
    counted["webhook_delivered"] += parcel.size
    return webhook._replace(
        delivered=webhook.delivered + parcel.size, failed=webhook.failed - parcel.size
    )


def bury(
    cursor: Cursor, webhook: Webhook, first: int, last: int, attempts: int, error: str, at_us: int
) -> None:
    """Keep what was given up."""
    cursor.execute(
        f"INSERT INTO dead_delivery ({DEAD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (*webhook.account, webhook.token, first, last, attempts, error, at_us),
    )


def take_next(cursor: Cursor, account: Account, now_us: int, counted: Counter[str]) -> Step:
    """What a webhook has to do next; what it shall send is noted as taken."""
    webhook = read_webhook(cursor, account)
    if webhook is None or webhook.ended:
        return Step(known=False)
    parcel = take_dead(cursor, webhook)
    if parcel is not None:
        return Step(parcel)
    if webhook.taken > webhook.number:
        if webhook.next_us > now_us:
            return Step(wait_us=webhook.next_us)
        return Step(pack(webhook))
    numbers = read_numbers(cursor, account)
    if numbers <= webhook.number:
        return Step()
    due_us = webhook.sent_us + webhook.throttle_us if webhook.throttle_us else 0
    if webhook.digest_us:
        cursor.execute(
            f"SELECT min(at_us) FROM result {OF_FOLIO} AND number = ?",
            (*account, webhook.number + 1),
        )
        due_us = int(cursor.fetchone()[0] or 0) + webhook.digest_us
    if due_us > now_us:
        return Step(wait_us=due_us)
    first = numbers if webhook.throttle_us else webhook.number + 1
    last = fill(cursor, account, first, numbers)
    counted["throttled"] += first - 1 - webhook.number
    webhook = webhook._replace(
        number=first - 1,
        taken=last,
        dropped=webhook.dropped + first - 1 - webhook.number,
        attempts=0,
        next_us=0,
    )
    write_webhook(cursor, webhook)
    return Step(pack(webhook))


def pack(webhook: Webhook) -> Parcel:
    return Parcel(
        *webhook.account, webhook.token, webhook.url, webhook.secret, webhook.number + 1,
        webhook.taken, webhook.attempts,
    )  # fmt: skip


def fill(cursor: Cursor, account: Account, first: int, last: int) -> int:
    """The last number that goes into one body with those from `first` on."""
    cursor.execute(
        f"SELECT number, length(body) FROM result {OF_FOLIO} AND number >= ?"
        " AND number <= ? ORDER BY number LIMIT ?",
        (*account, first, last, MOST_RESULTS),
    )
    size, end = 0, first
    for number, length in cursor.fetchall():
        size += length
        if size > MOST_CHARACTERS and number > first:
            break
        end = number
    return end


def take_dead(cursor: Cursor, webhook: Webhook) -> Parcel | None:
    """One that was given up and is to be tried again; a long one is divided."""
    cursor.execute(
        f"SELECT {DEAD} FROM dead_delivery {OF_ACCOUNT} AND again = 1"
        " ORDER BY first_number, token LIMIT 1",
        webhook.account,
    )
    row = cursor.fetchone()
    if row is None:
        return None
    dead = DeadDelivery(*row)
    last = fill(cursor, webhook.account, dead.first_number, dead.last_number)
    if last < dead.last_number:
        cursor.execute(
            f"UPDATE dead_delivery SET last_number = ? {OF_ACCOUNT}"
            " AND token = ? AND first_number = ?",
            (last, *webhook.account, dead.token, dead.first_number),
        )
        cursor.execute(
            f"INSERT INTO dead_delivery ({DEAD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            dead._replace(first_number=last + 1),
        )
    return Parcel(
        *webhook.account, dead.token, webhook.url, webhook.secret, dead.first_number, last,
        dead.attempts, dead=True,
    )  # fmt: skip


def give_up_before(cursor: Cursor, before_us: int, now_us: int) -> None:
    """Give up what has waited since before a time, and forget what was given up before it."""
    cursor.execute("DELETE FROM dead_delivery WHERE at_us < ?", (before_us,))
    cursor.execute(
        "SELECT d.subscription, d.owner, max(r.number) FROM delivery d"
        " JOIN subscription s ON s.id = d.subscription AND s.owner = d.owner"
        " JOIN result r ON r.folio = s.folio AND r.number > d.number"
        " WHERE d.ended = '' AND r.at_us < ? GROUP BY d.subscription, d.owner",
        (before_us,),
    )
    counted: Counter[str] = Counter()
    for name, owner, last in cursor.fetchall():
        webhook = read_webhook(cursor, Account(name, owner))
        assert webhook is not None
        first = webhook.number + 1
        error = f"{TOO_OLD}; {webhook.error}" if webhook.error else TOO_OLD
        bury(cursor, webhook, first, last, webhook.attempts, error, now_us)
        counted["webhook_given_up"] += last - webhook.number
        failed = webhook.failed + last - webhook.number
        write_webhook(
            cursor, webhook._replace(number=last, taken=max(webhook.taken, last), failed=failed)
        )
    add_meta(cursor, counted)
