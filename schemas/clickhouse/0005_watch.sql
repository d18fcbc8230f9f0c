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
