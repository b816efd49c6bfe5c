"""The ledger's tables, in the SQL that SQLite and PostgreSQL share.

`ROW_NUMBER` is what a database calls the type of a table's own numbers, 64 bits long.
"""

from __future__ import annotations

VERSION = 3

TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS subscription (
        id TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL,
        since_us BIGINT NOT NULL, expires_us BIGINT, ended_seq BIGINT, owned_seq BIGINT NOT NULL,
        numbers BIGINT NOT NULL, body TEXT NOT NULL, standing TEXT,
        folio BIGINT NOT NULL, PRIMARY KEY (id, owner))""",
    "CREATE INDEX IF NOT EXISTS subscription_owner ON subscription (owner, id)",
    """CREATE TABLE IF NOT EXISTS tenure (
        id TEXT NOT NULL, first_seq BIGINT NOT NULL, owner TEXT NOT NULL,
        PRIMARY KEY (id, first_seq))""",
    """CREATE TABLE IF NOT EXISTS spell (
        id TEXT NOT NULL, seq BIGINT NOT NULL, owner TEXT NOT NULL, end_seq BIGINT NOT NULL,
        how TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, seq))""",
    """CREATE TABLE IF NOT EXISTS result (
        position ROW_NUMBER PRIMARY KEY, subscription TEXT NOT NULL, owner TEXT NOT NULL,
        number BIGINT NOT NULL, seq BIGINT NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
        body TEXT NOT NULL, at_us BIGINT NOT NULL, folio BIGINT NOT NULL)""",
    "CREATE UNIQUE INDEX IF NOT EXISTS result_number ON result (folio, number)",
    "CREATE INDEX IF NOT EXISTS result_owner ON result (owner, position)",
    """CREATE TABLE IF NOT EXISTS dead_letter (
        seq ROW_NUMBER PRIMARY KEY, error TEXT NOT NULL, event TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reply (
        owner TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, at_us BIGINT NOT NULL,
        PRIMARY KEY (owner, key))""",
    """CREATE TABLE IF NOT EXISTS api_key (
        name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, roles TEXT NOT NULL,
        made_us BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS delivery (
        subscription TEXT NOT NULL, owner TEXT NOT NULL, token TEXT NOT NULL,
        url TEXT NOT NULL, secret TEXT NOT NULL,
        throttle_us BIGINT NOT NULL, digest_us BIGINT NOT NULL,
        number BIGINT NOT NULL, taken BIGINT NOT NULL, delivered BIGINT NOT NULL,
        dropped BIGINT NOT NULL, failed BIGINT NOT NULL, attempts BIGINT NOT NULL,
        next_us BIGINT NOT NULL, sent_us BIGINT NOT NULL, error TEXT NOT NULL,
        ended TEXT NOT NULL, PRIMARY KEY (subscription, owner))""",
    """CREATE TABLE IF NOT EXISTS dead_delivery (
        subscription TEXT NOT NULL, owner TEXT NOT NULL, token TEXT NOT NULL,
        first_number BIGINT NOT NULL, last_number BIGINT NOT NULL, attempts BIGINT NOT NULL,
        error TEXT NOT NULL, at_us BIGINT NOT NULL, again BIGINT NOT NULL,
        PRIMARY KEY (subscription, owner, token, first_number))""",
)
