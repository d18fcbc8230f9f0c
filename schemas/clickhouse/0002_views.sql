-- What analysts read.

-- The arithmetic is on whole numbers of 256 bits: Decimal x Decimal adds scales and may overflow
-- silently. nano is a quantity in billionths, pico an amount in 10^-12; what is too large for its
-- column is an error.
CREATE VIEW IF NOT EXISTS line_items AS
WITH
    -- Each segment of an hour, and each consumed amount, with its charge.
    items AS
    (
        SELECT
            h.tenant AS tenant, h.charge AS charge, s.project AS project, s.lease AS lease,
            h.session AS session, s.node AS node, s.region AS region,
            h.hour + h.from AS start, h.hour + h.to AS end, h.day AS day,
            h.billing_period AS billing_period, if(h.kind = 0, 'usage', 'void') AS kind,
            s.labels AS labels, 'unit-second' AS base_unit,
            toInt256(h.held) * 1000000 * if(h.kind = 0, 1, -1) * h.seconds AS nano
        FROM
        (
            SELECT
                tenant, hour, session, sku, held, kind, charge, billing_period, day, from, to,
                seconds
            FROM hours FINAL
            ARRAY JOIN
                seg_kind AS kind, seg_charge AS charge, seg_billing_period AS billing_period,
                seg_day AS day, seg_from AS from, seg_to AS to, seg_seconds AS seconds
        ) AS h
        LEFT JOIN
        (
            SELECT tenant, session, sku, project, lease, node, region, labels FROM sessions FINAL
        ) AS s ON h.tenant = s.tenant AND h.session = s.session AND h.sku = s.sku
        UNION ALL
        SELECT
            tenant, charge, project, '', '', '', region, time, time, day, billing_period, 'usage',
            labels, 'unit', toInt256(reinterpret(quantity, 'Int128'))
        FROM consumed FINAL
    ),
    settled AS
    (
        SELECT
            tenant, each_charge AS charge, toInt256(reinterpret(each_quantity, 'Int128')) AS nano,
            each_price AS unit_price, each_per AS per, each_num AS list_num, each_den AS list_den,
            toInt256(reinterpret(each_amount, 'Int128')) AS pico, each_currency AS currency
        FROM settlements FINAL
        ARRAY JOIN
            charge AS each_charge, quantity AS each_quantity, unit_price AS each_price,
            per AS each_per, list_num AS each_num, list_den AS each_den, amount AS each_amount,
            currency AS each_currency
    ),
    -- Its part of the charge's amount, cut to 12 decimals.
    priced AS
    (
        SELECT
            i.*, t.nano AS charge_nano, t.pico AS charge_pico, t.unit_price AS unit_price,
            t.per AS per, t.currency AS currency,
            intDiv(t.list_num * i.nano, if(t.list_den = 0, 1, t.list_den)) AS list_pico,
            if(t.nano = 0, 0, intDiv(t.pico * i.nano, if(t.nano = 0, 1, t.nano))) AS pico
        FROM items AS i
        LEFT JOIN settled AS t ON i.tenant = t.tenant AND i.charge = t.charge
    ),
    -- And what cutting leaves, where the settlement is of these very items.
    lines AS
    (
        SELECT
            tenant, charge, project, lease, session, node, region, start, end, day, billing_period,
            kind, labels, nano, base_unit, unit_price, per, list_pico, pico, currency
        FROM priced
        UNION ALL
        SELECT
            tenant, charge, '', '', '', '', splitByChar('|', charge)[6], min(start), max(end),
            min(day), min(billing_period), 'rounding',
            CAST(map(), 'Map(LowCardinality(String), String)'), toInt256(0), any(base_unit),
            any(unit_price), any(per), toInt256(0), any(charge_pico) - sum(pico) AS rest,
            any(currency)
        FROM priced
        GROUP BY tenant, charge
        HAVING sum(nano) = any(charge_nano) AND rest != 0
    )
SELECT
    tenant,
    project,
    lease,
    session,
    node,
    region,
    splitByChar('|', charge)[5] AS sku,
    splitByChar('|', charge)[7] AS purchase,
    splitByChar('|', charge)[8] AS band,
    start AS usage_start,
    end AS usage_end,
    toDate(day) AS day,
    billing_period,
    splitByChar('|', charge)[10] AS usage_period,
    kind,
    labels,
    reinterpret(accurateCast(nano, 'Int128'), 'Decimal(38, 9)') AS base_quantity,
    base_unit,
    unit_price,
    per,
    reinterpret(accurateCast(list_pico, 'Int128'), 'Decimal(38, 12)') AS list_amount,
    reinterpret(accurateCast(pico, 'Int128'), 'Decimal(38, 12)') AS amount,
    reinterpret(accurateCast(pico, 'Int128'), 'Decimal(38, 12)') AS effective_amount,
    currency
FROM lines
SETTINGS do_not_merge_across_partitions_select_final = 1, join_use_nulls = 0
COMMENT 'Their amounts add up to the bill. What is not settled yet costs 0, in currency ""';

CREATE VIEW IF NOT EXISTS spend_daily AS
SELECT
    tenant,
    project,
    day,
    sku,
    purchase,
    band,
    currency,
    sum(base_quantity) AS base_quantity,
    sum(amount) AS amount
FROM line_items
GROUP BY tenant, project, day, sku, purchase, band, currency
COMMENT 'What each local day of usage costs; rounding counts in the project ""';
