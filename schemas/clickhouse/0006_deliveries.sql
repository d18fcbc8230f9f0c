-- What became of messages, without the secrets that URLs of receivers may have.

CREATE VIEW IF NOT EXISTS delivery_states AS
SELECT
    message,
    JSONExtractString(delivery, 'Message', 'alert') AS alert,
    JSONExtractString(delivery, 'Message', 'tenant') AS tenant,
    JSONExtractString(delivery, 'Message', 'type') AS type,
    -- netloc() would show the beginning of the path behind a port.
    replaceRegexpOne(channel, '^(webhook|alertmanager):([^:]*:)??https?://([^/?]*).*$', '\\1:\\3')
        AS receiver,
    state,
    attempts,
    outcome,
    toInt32(JSONExtractInt(delivery, 'Status')) AS status,
    JSONExtractString(delivery, 'Error') AS error,
    parseDateTime64BestEffortOrZero(JSONExtractString(delivery, 'Message', 'time'), 3, 'UTC')
        AS decided,
    if(state = 'pending', next, NULL) AS due,
    if(state = 'pending', NULL,
        parseDateTime64BestEffortOrZero(JSONExtractString(delivery, 'Done'), 3, 'UTC')) AS done,
    dateDiff('millisecond', decided, done) AS latency_ms
FROM deliveries FINAL
COMMENT 'Messages and their receivers: latency_ms is from the decision to the end, NULL while pending';

CREATE VIEW IF NOT EXISTS delivery_attempts AS
SELECT
    message,
    replaceRegexpOne(channel, '^(webhook|alertmanager):([^:]*:)??https?://([^/?]*).*$', '\\1:\\3')
        AS receiver,
    tenant, type, round, attempt, time, outcome, status, latency_ms, error
FROM delivery_log FINAL
COMMENT 'Attempts to deliver messages: latency_ms is how long the attempt took';
