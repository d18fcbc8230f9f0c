-- Alerts that were decided on, and how they reach their receivers.

-- One decision to tell somebody something, or one change of it. The billing topic is their record;
-- this table follows it.
CREATE TABLE IF NOT EXISTS alerts
(
    id        String COMMENT 'the key, and what became of it: the same change has the same id',
    key       String COMMENT 'of all changes of one alert',
    status    LowCardinality(String) COMMENT 'firing, acknowledged or resolved',
    kind      LowCardinality(String) COMMENT 'budget, or the type of a policy',
    tenant    LowCardinality(String) COMMENT 'empty: it is about the platform',
    name      LowCardinality(String) COMMENT 'of the budget or policy',
    subject   String COMMENT 'what a policy found, such as a session',
    labels    Map(LowCardinality(String), String),
    period    LowCardinality(String) COMMENT 'of a budget: YYYY-MM or YYYY-MM-DD, local',
    threshold LowCardinality(String) COMMENT 'of a budget: fraction of the amount',
    spend     Decimal(76, 36) COMMENT 'of a budget',
    amount    Decimal(38, 18) COMMENT 'of a budget',
    currency  LowCardinality(String) COMMENT 'of a budget',
    since     DateTime('UTC') COMMENT 'when it began to fire',
    at        DateTime('UTC') COMMENT 'when this was decided',
    why       LowCardinality(String) COMMENT 'resolved: recovered, over (a period) or ended (a rule)',
    by        String COMMENT 'who acknowledged it',
    note      String,
    query     String COMMENT 'shows the figures that it rests on',
    alert     String COMMENT 'all of it, JSON',
    offset    Int64 COMMENT 'in the billing topic'
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, kind, name, key, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Alerts and what became of them, each change once';

CREATE VIEW IF NOT EXISTS alert_states AS
SELECT
    key, status, kind, tenant, name, subject, labels, period, threshold, spend, amount, currency,
    since, at, why, by, note, query, alert, offset
FROM alerts FINAL
ORDER BY offset DESC
LIMIT 1 BY key
COMMENT 'Alerts in their newest state';

-- One message on its way to one receiver, in its newest state.
CREATE TABLE IF NOT EXISTS deliveries
(
    message  String COMMENT 'its id',
    channel  String COMMENT 'the name of the receiver; may hold a secret URL',
    state    LowCardinality(String) COMMENT 'pending, delivered or dead',
    next     DateTime64(3, 'UTC') COMMENT 'pending: when the next attempt is due',
    attempts UInt32,
    outcome  LowCardinality(String) COMMENT 'of the last attempt',
    delivery String COMMENT 'all of it, JSON',
    version  UInt64 COMMENT 'the larger state wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (message, channel)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Messages and their receivers';

-- Each attempt to deliver a message.
CREATE TABLE IF NOT EXISTS delivery_log
(
    message    String,
    channel    String,
    tenant     LowCardinality(String),
    type       LowCardinality(String),
    round      UInt32 COMMENT 'how often a person began anew',
    attempt    UInt32 COMMENT 'from 1; 0: none was made, as the receiver is disabled',
    time       DateTime64(3, 'UTC'),
    outcome    LowCardinality(String),
    status     Int32 COMMENT 'of HTTP or SMTP; 0 is none',
    latency_ms UInt32,
    error      String
)
ENGINE = ReplacingMergeTree
ORDER BY (message, channel, round, attempt)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Attempts to deliver messages';

-- Receivers that want no more messages.
CREATE TABLE IF NOT EXISTS disabled_channels
(
    channel  String,
    disabled Bool,
    at       DateTime64(3, 'UTC'),
    version  UInt64 COMMENT 'nanoseconds: the later state wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY channel
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Receivers that want no more messages';
