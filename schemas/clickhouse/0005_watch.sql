-- What alerts look at: how busy sessions and cards are, and which sessions have ended.

-- Rows of before do not know when their windows began, so that they have no length.
ALTER TABLE telemetry
    ADD COLUMN IF NOT EXISTS start DateTime64(3, 'UTC') DEFAULT time
        COMMENT 'of the window that was read' AFTER session,
    ADD COLUMN IF NOT EXISTS devices Array(String) COMMENT 'the cards held, such as GPU UUIDs',
    ADD COLUMN IF NOT EXISTS mem_total_mib Nullable(Float32) COMMENT 'of the cards held',
    ADD COLUMN IF NOT EXISTS final Nullable(Bool) COMMENT 'the session ended with this window';

-- A record gives a row if it has telemetry, or says whether its window is the last one of its
-- session. As before, nothing here may fail.
ALTER TABLE telemetry_from_usage_events MODIFY QUERY
SELECT
    tenant,
    data.node AS node,
    data.session AS session,
    parseDateTime64BestEffortOrZero(data.start, 3, 'UTC') AS start,
    parseDateTime64BestEffortOrZero(data.end, 3, 'UTC') AS time,
    data.telemetry.gpu_util AS gpu_util,
    data.telemetry.mem_used_mib AS mem_used_mib,
    data.telemetry.power_w AS power_w,
    data.telemetry.temp_c AS temp_c,
    data.telemetry.energy_j AS energy_j,
    partition,
    offset,
    data.devices AS devices,
    data.telemetry.mem_total_mib AS mem_total_mib,
    data.final AS final
FROM
(
    SELECT
        tenant,
        partition,
        offset,
        JSONExtract(value, 'data', 'Tuple(session String, node String, start String, end String, '
            || 'devices Array(String), final Nullable(Bool), telemetry Tuple('
            || 'gpu_util Nullable(Float32), mem_used_mib Nullable(Float32), '
            || 'mem_total_mib Nullable(Float32), power_w Nullable(Float32), '
            || 'temp_c Nullable(Float32), energy_j Nullable(Float64)))') AS data
    FROM usage_events
    WHERE (position(value, '"telemetry"') > 0 AND JSONType(value, 'data', 'telemetry') = 'Object')
        OR (position(value, '"final"') > 0 AND JSONType(value, 'data', 'final') = 'Bool')
);

-- Finds what is new without reading all of a month.
ALTER TABLE telemetry ADD INDEX IF NOT EXISTS time time TYPE minmax GRANULARITY 1;

-- Windows that end in (from, until], each counted where it ends. What comes again, or overlaps,
-- counts once: a window has the seconds after the end of the one that ended before it. A session's
-- utilisation is the mean of its cards.
CREATE VIEW IF NOT EXISTS telemetry_windows AS
SELECT
    tenant,
    node,
    session,
    devices,
    start,
    time,
    util,
    if(isNull(util), 0, greatest(0, toUnixTimestamp(time) - toUnixTimestamp(greatest(start,
        maxIf(time, isNotNull(util)) OVER
        (
            PARTITION BY tenant, node, session ORDER BY time, start, partition, offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ))))) AS seconds,
    mem_used,
    mem_total,
    final
FROM
(
    SELECT
        tenant, node, session, devices, start, time, partition, offset, final,
        if(ifNull(isFinite(gpu_util), 0),
            toInt64(round(least(greatest(toFloat64(gpu_util), 0), 1) * 1000000)), NULL
        ) AS util,
        if(ifNull(isFinite(mem_used_mib), 0),
            toInt64(round(least(greatest(toFloat64(mem_used_mib), 0), 1000000000))), NULL
        ) AS mem_used,
        if(ifNull(isFinite(mem_total_mib), 0),
            toInt64(round(least(greatest(toFloat64(mem_total_mib), 0), 1000000000))), NULL
        ) AS mem_total
    FROM telemetry
    WHERE time > {from:DateTime64(3, 'UTC')} AND time <= {until:DateTime64(3, 'UTC')}
        AND start < time AND start >= time - toIntervalDay(1)
)
COMMENT 'Windows that end in (from, until]: util, in millionths, for seconds; memory in MiB';
