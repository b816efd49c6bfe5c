"""Webhook state in the ledger: settings, cursors, counters and dead deliveries.

The ledger stores which results a body contains before it is sent, so a repeat after a crash is
identical. The cursor moves in the same transaction as the counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placewire.serve.ledger.database import ACCOUNT, Database, DatabaseCursor, add_meta
from placewire.serve.ledger.rows import (
    DELIVERED,
    FAILED,
    GONE,
    Account,
    DeadDelivery,
    DeliveryReport,
    NextStep,
    WebhookDelivery,
    WebhookRow,
    WebhookSettings,
)

WEBHOOK_COLUMNS = ", ".join(WebhookRow._fields)
DEAD_COLUMNS = ", ".join(DeadDelivery._fields)
MAX_RESULTS = 500  # per body
MAX_CHARACTERS = 1 << 20  # per body with more than one result
OF_ACCOUNT = "WHERE subscription = ? AND owner = ?"
IN_ACCOUNT = f"WHERE {ACCOUNT} = (SELECT {ACCOUNT} FROM subscription WHERE id = ? AND owner = ?)"
TOO_OLD = "waited longer than results are kept"


class Deliveries:
    """The webhooks of a ledger."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def find_all(self, names: Sequence[str]) -> dict[Account, WebhookRow]:
        """The webhooks of some ids, of all owners."""
        if not names:
            return {}
        marks = ", ".join("?" * len(names))
        rows = self.database.read(
            f"SELECT {WEBHOOK_COLUMNS} FROM delivery WHERE subscription IN ({marks})", names
        )
        return {Account(*row[:2]): WebhookRow(*row) for row in rows}

    def find(self, account: Account) -> WebhookRow | None:
        return self.find_all([account.subscription]).get(account)

    def put(
        self, account: Account, settings: WebhookSettings, token: str, secret: str
    ) -> bool | None:
        """Create or replace a webhook; true if new, None if the owner has no such subscription.

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
                begin = first_kept(cursor, account, settings.after or 0, numbers)
                made = WebhookRow(
                    *account, token, settings.url, settings.secret or secret, settings.throttle_us,
                    settings.digest_us, begin, begin, 0, 0, 0, 0, 0, 0, "", "",
                )  # fmt: skip
                write_webhook(cursor, made)
                return True
            number, taken = former.number, former.taken
            if settings.after is not None:
                number = taken = settings.after
                add_meta(cursor, Counter(webhook_left=max(number - former.number, 0)))
                # It restarts, and so do its counters.
                former = former._replace(token=token, delivered=0, dropped=0, failed=0)
            kept = first_kept(cursor, account, number, numbers)
            write_webhook(
                cursor,
                former._replace(
                    url=settings.url,
                    secret=settings.secret or former.secret,
                    throttle_us=settings.throttle_us,
                    digest_us=settings.digest_us,
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
        """Delete a webhook; undelivered results stay in the ledger."""
        with self.database.writing() as cursor:
            return delete_webhook(cursor, account)

    def active(self) -> list[tuple[Account, bool]]:
        """All active webhooks, and whether each has work."""
        rows = self.database.read(
            "SELECT d.subscription, d.owner, s.numbers > d.number OR EXISTS"
            " (SELECT 1 FROM dead_delivery x WHERE x.subscription = d.subscription"
            " AND x.owner = d.owner AND x.again = 1) FROM delivery d"
            " JOIN subscription s ON s.id = d.subscription AND s.owner = d.owner"
            " WHERE d.ended = ''"
        )
        return [(Account(name, owner), bool(waits)) for name, owner, waits in rows]

    def advance(
        self, reports: Iterable[tuple[Account, DeliveryReport | None]], now_us: int
    ) -> list[NextStep]:
        """Apply delivery reports, and return the next step of each webhook."""
        counted: Counter[str] = Counter()
        steps = []
        with self.database.writing() as cursor:
            for account, report in reports:
                if report is not None:
                    apply_report(cursor, report, now_us, counted)
                steps.append(next_step(cursor, account, now_us, counted))
            add_meta(cursor, counted)
        return steps

    def dead(self, account: Account, after: int, limit: int) -> list[DeadDelivery]:
        """Dead deliveries of a subscription, by first result number."""
        rows = self.database.read(
            f"SELECT {DEAD_COLUMNS} FROM dead_delivery WHERE subscription = ? AND owner = ?"
            " AND first_number > ? ORDER BY first_number, token LIMIT ?",
            (*account, after, limit),
        )
        return [DeadDelivery(*row) for row in rows]

    def retry_dead(self, account: Account) -> int:
        """Queue all dead deliveries for one more attempt; returns their number."""
        with self.database.writing() as cursor:
            cursor.execute(f"SELECT count(*) FROM dead_delivery {OF_ACCOUNT}", account)
            found = int(cursor.fetchone()[0])
            cursor.execute(f"UPDATE dead_delivery SET again = 1 {OF_ACCOUNT}", account)
        return found

    def count(self) -> dict[str, int]:
        """Counts of webhooks, pending results and dead deliveries."""
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


def read_webhook(cursor: DatabaseCursor, account: Account) -> WebhookRow | None:
    cursor.execute(f"SELECT {WEBHOOK_COLUMNS} FROM delivery {OF_ACCOUNT}", account)
    row = cursor.fetchone()
    return WebhookRow(*row) if row else None


def write_webhook(cursor: DatabaseCursor, webhook: WebhookRow) -> None:
    marks = ", ".join("?" * len(WebhookRow._fields))
    sets = ", ".join(f"{name} = excluded.{name}" for name in WebhookRow._fields[2:])
    cursor.execute(
        f"INSERT INTO delivery ({WEBHOOK_COLUMNS}) VALUES ({marks})"
        f" ON CONFLICT (subscription, owner) DO UPDATE SET {sets}",
        webhook,
    )


def first_kept(cursor: DatabaseCursor, account: Account, after: int, numbers: int) -> int:
    """The cursor before the first result after `after` that is still kept."""
    cursor.execute(f"SELECT min(number) FROM result {IN_ACCOUNT} AND number > ?", (*account, after))
    row = cursor.fetchone()
    return int(row[0]) - 1 if row[0] is not None else max(numbers, after)


def count_results(cursor: DatabaseCursor, account: Account) -> int:
    """How many results an account has had."""
    cursor.execute("SELECT numbers FROM subscription WHERE id = ? AND owner = ?", account)
    return int(cursor.fetchone()[0])


def delete_webhook(cursor: DatabaseCursor, account: Account) -> bool:
    """Delete a webhook and its dead deliveries; false if there is none."""
    webhook = read_webhook(cursor, account)
    if webhook is None:
        return False
    left = count_results(cursor, account) - webhook.number
    add_meta(cursor, Counter(webhook_left=max(left, 0)))
    cursor.execute(f"DELETE FROM dead_delivery {OF_ACCOUNT}", account)
    cursor.execute(f"DELETE FROM delivery {OF_ACCOUNT}", account)
    return True


def apply_report(
    cursor: DatabaseCursor, report: DeliveryReport, now_us: int, counted: Counter[str]
) -> None:
    """Apply the outcome of a delivery, unless its webhook has changed since."""
    delivery = report.delivery
    webhook = read_webhook(cursor, delivery.account)
    if webhook is None:
        return
    counted["webhook_attempts"] += 1
    if report.outcome == GONE and (webhook.token, webhook.url) == (delivery.token, delivery.url):
        webhook = webhook._replace(ended=report.error)
    if delivery.dead:
        webhook = apply_dead_outcome(cursor, report, webhook, counted)
    elif (webhook.token, webhook.number + 1, webhook.taken) == (
        delivery.token, delivery.first, delivery.last,
    ):  # fmt: skip
        webhook = apply_outcome(cursor, report, webhook, now_us, counted)
    write_webhook(cursor, webhook)


def apply_outcome(
    cursor: DatabaseCursor,
    report: DeliveryReport,
    webhook: WebhookRow,
    now_us: int,
    counted: Counter[str],
) -> WebhookRow:
    delivery = report.delivery
    if report.outcome == DELIVERED:
        counted["webhook_delivered"] += delivery.size
        return webhook._replace(
            number=delivery.last,
            delivered=webhook.delivered + delivery.size,
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
    counted["webhook_given_up"] += delivery.size
    insert_dead(cursor, webhook, delivery.first, delivery.last, attempts, report.error, now_us)
    return webhook._replace(
        number=delivery.last,
        failed=webhook.failed + delivery.size,
        attempts=0,
        next_us=0,
        error=report.error,
    )


def apply_dead_outcome(
    cursor: DatabaseCursor, report: DeliveryReport, webhook: WebhookRow, counted: Counter[str]
) -> WebhookRow:
    """Apply the outcome of a retried dead delivery: delivered, or still dead."""
    delivery = report.delivery
    key = (*delivery.account, delivery.token, delivery.first)
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
    counted["webhook_delivered"] += delivery.size
    return webhook._replace(
        delivered=webhook.delivered + delivery.size, failed=webhook.failed - delivery.size
    )


def insert_dead(
    cursor: DatabaseCursor,
    webhook: WebhookRow,
    first: int,
    last: int,
    attempts: int,
    error: str,
    at_us: int,
) -> None:
    """Store a dead delivery."""
    cursor.execute(
        f"INSERT INTO dead_delivery ({DEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (*webhook.account, webhook.token, first, last, attempts, error, at_us),
    )


def next_step(
    cursor: DatabaseCursor, account: Account, now_us: int, counted: Counter[str]
) -> NextStep:
    """The next step of a webhook; stores which results it sends."""
    webhook = read_webhook(cursor, account)
    if webhook is None or webhook.ended:
        return NextStep(known=False)
    delivery = next_dead(cursor, webhook)
    if delivery is not None:
        return NextStep(delivery)
    if webhook.taken > webhook.number:
        if webhook.next_us > now_us:
            return NextStep(wait_us=webhook.next_us)
        return NextStep(pack(webhook))
    numbers = count_results(cursor, account)
    if numbers <= webhook.number:
        return NextStep()
    due_us = webhook.sent_us + webhook.throttle_us if webhook.throttle_us else 0
    if webhook.digest_us:
        cursor.execute(
            f"SELECT min(at_us) FROM result {IN_ACCOUNT} AND number = ?",
            (*account, webhook.number + 1),
        )
        due_us = int(cursor.fetchone()[0] or 0) + webhook.digest_us
    if due_us > now_us:
        return NextStep(wait_us=due_us)
    first = numbers if webhook.throttle_us else webhook.number + 1
    last = last_in_body(cursor, account, first, numbers)
    counted["throttled"] += first - 1 - webhook.number
    webhook = webhook._replace(
        number=first - 1,
        taken=last,
        dropped=webhook.dropped + first - 1 - webhook.number,
        attempts=0,
        next_us=0,
    )
    write_webhook(cursor, webhook)
    return NextStep(pack(webhook))


def pack(webhook: WebhookRow) -> WebhookDelivery:
    return WebhookDelivery(
        *webhook.account, webhook.token, webhook.url, webhook.secret, webhook.number + 1,
        webhook.taken, webhook.attempts,
    )  # fmt: skip


def last_in_body(cursor: DatabaseCursor, account: Account, first: int, last: int) -> int:
    """The last result number that fits into one body starting at `first`."""
    cursor.execute(
        f"SELECT number, length(body) FROM result {IN_ACCOUNT} AND number >= ?"
        " AND number <= ? ORDER BY number LIMIT ?",
        (*account, first, last, MAX_RESULTS),
    )
    size, end = 0, first
    for number, length in cursor.fetchall():
        size += length
        if size > MAX_CHARACTERS and number > first:
            break
        end = number
    return end


def next_dead(cursor: DatabaseCursor, webhook: WebhookRow) -> WebhookDelivery | None:
    """The next dead delivery to retry; splits one that is too long."""
    cursor.execute(
        f"SELECT {DEAD_COLUMNS} FROM dead_delivery {OF_ACCOUNT} AND again = 1"
        " ORDER BY first_number, token LIMIT 1",
        webhook.account,
    )
    row = cursor.fetchone()
    if row is None:
        return None
    dead = DeadDelivery(*row)
    last = last_in_body(cursor, webhook.account, dead.first_number, dead.last_number)
    if last < dead.last_number:
        cursor.execute(
            f"UPDATE dead_delivery SET last_number = ? {OF_ACCOUNT}"
            " AND token = ? AND first_number = ?",
            (last, *webhook.account, dead.token, dead.first_number),
        )
        cursor.execute(
            f"INSERT INTO dead_delivery ({DEAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            dead._replace(first_number=last + 1),
        )
    return WebhookDelivery(
        *webhook.account, dead.token, webhook.url, webhook.secret, dead.first_number, last,
        dead.attempts, dead=True,
    )  # fmt: skip


def give_up_before(cursor: DatabaseCursor, before_us: int, now_us: int) -> None:
    """Give up results that have waited since before a time, and delete older dead deliveries."""
    cursor.execute("DELETE FROM dead_delivery WHERE at_us < ?", (before_us,))
    cursor.execute(
        "SELECT d.subscription, d.owner, max(r.number) FROM delivery d"
        " JOIN subscription s ON s.id = d.subscription AND s.owner = d.owner"
        f" JOIN result r ON r.{ACCOUNT} = s.{ACCOUNT} AND r.number > d.number"
        " WHERE d.ended = '' AND r.at_us < ? GROUP BY d.subscription, d.owner",
        (before_us,),
    )
    counted: Counter[str] = Counter()
    for name, owner, last in cursor.fetchall():
        webhook = read_webhook(cursor, Account(name, owner))
        assert webhook is not None
        first = webhook.number + 1
        error = f"{TOO_OLD}; {webhook.error}" if webhook.error else TOO_OLD
        insert_dead(cursor, webhook, first, last, webhook.attempts, error, now_us)
        counted["webhook_given_up"] += last - webhook.number
        failed = webhook.failed + last - webhook.number
        write_webhook(
            cursor, webhook._replace(number=last, taken=max(webhook.taken, last), failed=failed)
        )
    add_meta(cursor, counted)
