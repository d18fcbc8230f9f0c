-- What Suanpan keeps. Every table takes the same rows again: ReplacingMergeTree keeps one row of
-- each sorting key, the one of the largest version. It drops the others when it merges, some time
-- later, so tables are read with FINAL, as the views do.

-- Every record of the usage topic, as it came. It is never decoded on its way here.
CREATE TABLE IF NOT EXISTS usage_events
(
    topic        LowCardinality(String),
    partition    Int32,
    offset       Int64,
    record_time  DateTime64(3, 'UTC') COMMENT 'of the log',
    tenant       LowCardinality(String) COMMENT 'the key of the record',
    value        String CODEC(ZSTD(1)),
    header_names  Array(String),
    header_values Array(String)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(record_time)
ORDER BY (topic, partition, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Raw records of the usage topic';

-- GPU readings, for advice. They are never billed.
CREATE TABLE IF NOT EXISTS telemetry
(
    tenant       LowCardinality(String),
    node         String,
    session      String,
    time         DateTime64(3, 'UTC') COMMENT 'end of the window that was read',
    gpu_util     Nullable(Float32) COMMENT 'share of time in which the GPUs were busy, 0 to 1',
    mem_used_mib Nullable(Float32),
    power_w      Nullable(Float32),
    temp_c       Nullable(Float32),
    energy_j     Nullable(Float64) COMMENT 'in the window',
    partition    Int32,
    offset       Int64
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(time)
ORDER BY (tenant, node, session, time, partition, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Readings that usage events carried';

-- A record that is not JSON, or has no telemetry in its data, gives no row; nothing here may fail,
-- as the archive would fail with it. The cheap search comes first: most records have no telemetry.
CREATE MATERIALIZED VIEW IF NOT EXISTS telemetry_from_usage_events TO telemetry AS
SELECT
    tenant,
    data.node AS node,
    data.session AS session,
    parseDateTime64BestEffortOrZero(data.end, 3, 'UTC') AS time,
    data.telemetry.gpu_util AS gpu_util,
    data.telemetry.mem_used_mib AS mem_used_mib,
    data.telemetry.power_w AS power_w,
    data.telemetry.temp_c AS temp_c,
    data.telemetry.energy_j AS energy_j,
    partition,
    offset
FROM
(
    SELECT
        tenant,
        partition,
        offset,
        JSONExtract(value, 'data', 'Tuple(session String, node String, end String, telemetry Tuple('
            || 'gpu_util Nullable(Float32), mem_used_mib Nullable(Float32), '
            || 'power_w Nullable(Float32), temp_c Nullable(Float32), '
            || 'energy_j Nullable(Float64)))') AS data
    FROM usage_events
    WHERE position(value, '"telemetry"') > 0 AND JSONType(value, 'data', 'telemetry') = 'Object'
);

-- The facts of a session, and the amount of one of its SKUs, from the first accepted event on.
CREATE TABLE IF NOT EXISTS sessions
(
    tenant        LowCardinality(String),
    session       String,
    sku           LowCardinality(String),
    held          Int64 COMMENT 'thousandths',
    project       LowCardinality(String),
    lease         String,
    purchase      LowCardinality(String),
    region        LowCardinality(String),
    node          String,
    session_start Int64 COMMENT 'nanoseconds since 1970',
    resumed       Bool,
    labels        Map(LowCardinality(String), String),
    partition     Int32,
    offset        Int64,
    version       UInt64 COMMENT '2^64 - 1 - offset: the first in the log wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, session, sku)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Facts of sessions';

-- The seconds of an hour of a session that are not billed.
CREATE TABLE IF NOT EXISTS voids
(
    tenant  LowCardinality(String),
    hour    DateTime('UTC'),
    session String,
    seconds Array(UInt16) COMMENT 'from and to of each span, half open, within the hour',
    version UInt64 COMMENT 'number of seconds: sets only grow'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, hour, session)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Voided seconds';

-- One SKU that one event says was consumed. No partitions: the same event may come again with
-- another time.
CREATE TABLE IF NOT EXISTS consumed
(
    tenant         LowCardinality(String),
    source         String,
    id             String,
    sku            LowCardinality(String),
    quantity       Decimal(38, 9),
    charge         LowCardinality(String) COMMENT 'what is priced together, see hours',
    billing_period LowCardinality(String),
    day            UInt16 COMMENT 'local, since 1970-01-01',
    time           DateTime('UTC'),
    project        LowCardinality(String),
    purchase       LowCardinality(String),
    region         LowCardinality(String),
    labels         Map(LowCardinality(String), String),
    partition      Int32,
    offset         Int64,
    version        UInt64 COMMENT '2^64 - 1 - offset: the first in the log wins',
    written_at     DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX written_at written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, source, id, sku)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'What was consumed, not held';

-- One hour of one SKU of one session: all that was used and voided of it so far. A charge is
-- book|version|contract|version|sku|region|purchase|band|spot price|usage period|window.
CREATE TABLE IF NOT EXISTS hours
(
    tenant             LowCardinality(String),
    hour               DateTime('UTC'),
    session            String,
    sku                LowCardinality(String),
    held               Int64 COMMENT 'thousandths',
    used               Array(UInt16) COMMENT 'from and to of each span, half open, within the hour',
    voided             Array(UInt16) COMMENT 'a part of used',
    seg_kind           Array(UInt8) COMMENT '0 usage, 1 void',
    seg_charge         Array(LowCardinality(String)),
    seg_billing_period Array(LowCardinality(String)),
    seg_day            Array(UInt16) COMMENT 'local, since 1970-01-01',
    seg_from           Array(UInt16) COMMENT 'first second within the hour',
    seg_to             Array(UInt16) COMMENT 'after the last second',
    seg_seconds        Array(UInt16) COMMENT 'fewer than to - from where there are gaps',
    version            UInt64 COMMENT 'seconds in both sets: the larger state has seen more',
    written_at         DateTime64(3, 'UTC') DEFAULT now64(3),
    INDEX written_at written_at TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant, hour, session, sku)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Used and voided seconds, by hour';

-- What could not be rated, with its original bytes.
CREATE TABLE IF NOT EXISTS dead_letters
(
    topic         LowCardinality(String),
    partition     Int32,
    offset        Int64,
    record_time   DateTime64(3, 'UTC') COMMENT 'of the log',
    key           String,
    value         String CODEC(ZSTD(1)),
    header_names  Array(String),
    header_values Array(String),
    reason        LowCardinality(String),
    detail        String,
    source        String,
    id            String,
    seen_at       DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Records that were refused';

-- What the charges of a billing period cost, replaced whole by each settlement.
CREATE TABLE IF NOT EXISTS settlements
(
    tenant       LowCardinality(String),
    contract     LowCardinality(String),
    usage_period LowCardinality(String),
    charge       Array(String),
    quantity     Array(Decimal(38, 9)),
    base_unit    Array(LowCardinality(String)),
    unit_price   Array(Decimal(76, 36)),
    per          Array(LowCardinality(String)),
    list_num     Array(Int256) COMMENT 'list pico = quantity nano x list_num / list_den',
    list_den     Array(Int256),
    amount       Array(Decimal(38, 12)),
    currency     Array(LowCardinality(String)),
    as_of        UInt64 COMMENT 'nanoseconds since 1970: the later settlement wins'
)
ENGINE = ReplacingMergeTree(as_of)
ORDER BY (tenant, contract, usage_period)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Amounts of charges';
