-- Closes of billing periods, re-ratings, and the documents that are made of closed periods.

-- Where a billing period ends in the log. What is rated later counts in a later one.
CREATE TABLE IF NOT EXISTS period_closes
(
    tenant         LowCardinality(String),
    contract       LowCardinality(String) COMMENT 'empty for usage without one',
    period         LowCardinality(String),
    from           DateTime('UTC'),
    until          DateTime('UTC'),
    catalog_offset Int64 COMMENT 'end of the topic that the sender of the close had read',
    market_offset  Int64 COMMENT 'the same of the market topic',
    closed_at      DateTime('UTC') COMMENT 'when the log had the close',
    partition      Int32,
    offset         Int64,
    version        UInt64 COMMENT '2^64 - 1 - offset: the first in the log wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, contract, period)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Closed billing periods';

-- Orders to price the usage of some hours anew.
CREATE TABLE IF NOT EXISTS rerates
(
    tenant         LowCardinality(String),
    from           DateTime('UTC') COMMENT 'a whole hour',
    until          DateTime('UTC') COMMENT 'a whole hour',
    catalog_offset Int64 COMMENT 'the first record of the catalog topic that is not read',
    partition      Int32,
    offset         Int64
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, partition, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Re-ratings that were obeyed';

-- Late usage counts in a later billing period than its hour's: this finds the few such rows of a
-- month without reading all of it.
ALTER TABLE hours
    ADD INDEX IF NOT EXISTS billing_periods seg_billing_period TYPE bloom_filter(0.001) GRANULARITY 1;

-- Invoices and credit notes, each in its newest state. The billing topic is their record; this
-- table follows it.
CREATE TABLE IF NOT EXISTS documents
(
    tenant          LowCardinality(String),
    contract        LowCardinality(String),
    currency        LowCardinality(String),
    period          LowCardinality(String),
    type            LowCardinality(String) COMMENT 'invoice or credit_note',
    credit          String COMMENT 'tells the credit notes of one invoice apart',
    status          LowCardinality(String) COMMENT 'held, issued or voided',
    number          String COMMENT 'of an issued one',
    issue_date      String COMMENT 'YYYY-MM-DD, empty for drafts',
    due_date        String,
    subtotal        Decimal(38, 4),
    tax_total       Decimal(38, 4),
    total           Decimal(38, 4),
    due             Decimal(38, 4),
    unrounded_total Decimal(38, 12),
    why             Array(String) COMMENT 'it is held',
    by              String COMMENT 'who released or voided it, or made the credit note',
    reason          String,
    document        String COMMENT 'the document itself, see schemas/invoice.v1.json' CODEC(ZSTD(3)),
    at              DateTime64(3, 'UTC') COMMENT 'when the log had its newest state',
    offset          Int64 COMMENT 'in the billing topic, of its newest state',
    place           Int64 COMMENT 'orders documents as they were decided on',
    version         UInt64 COMMENT 'offset: the latest state wins'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, contract, currency, period, type, credit)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Invoices and credit notes';

-- Dead letters that were sent again: they hold no invoice back any more.
CREATE TABLE IF NOT EXISTS dead_letter_retries
(
    topic      LowCardinality(String),
    partition  Int32,
    offset     Int64,
    retried_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, offset)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Dead letters that were retried';

-- What finance reads. Credit notes count with a minus.
CREATE VIEW IF NOT EXISTS invoice_states AS
SELECT
    tenant,
    contract,
    period,
    type,
    number,
    issue_date,
    due_date,
    currency,
    if(type = 'invoice', subtotal, -subtotal) AS subtotal,
    if(type = 'invoice', tax_total, -tax_total) AS tax_total,
    if(type = 'invoice', total, -total) AS total,
    if(type = 'invoice', total - due, due - total) AS prepaid,
    if(type = 'invoice', due, -due) AS due,
    status,
    why,
    by,
    reason
FROM documents FINAL
COMMENT 'Invoices and credit notes, the latter negative; held and voided ones have no number';

CREATE VIEW IF NOT EXISTS invoices AS
SELECT
    tenant, contract, period, type, number, issue_date, due_date, currency, subtotal, tax_total,
    total, prepaid, due, by, reason
FROM invoice_states
WHERE status = 'issued'
COMMENT 'Issued invoices and credit notes, the latter negative: their amounts may be added up';

CREATE VIEW IF NOT EXISTS invoice_lines AS
SELECT
    tenant,
    contract,
    period,
    type,
    number,
    currency,
    line_number,
    JSONExtractString(line, 'kind') AS kind,
    JSONExtractString(line, 'sku') AS sku,
    JSONExtractString(line, 'purchase') AS purchase,
    JSONExtractString(line, 'band') AS band,
    JSONExtractString(line, 'usage_period') AS usage_period,
    toDecimal128(JSONExtractString(line, 'quantity'), 9) AS quantity,
    JSONExtractString(line, 'unit') AS unit,
    JSONExtractString(line, 'unit_price') AS unit_price,
    JSONExtractString(line, 'per') AS per,
    if(type = 'invoice', 1, -1) * toDecimal128(JSONExtractString(line, 'amount'), 4) AS amount
FROM
(
    SELECT tenant, contract, period, type, number, currency, document FROM documents FINAL
    WHERE status = 'issued'
)
ARRAY JOIN
    JSONExtractArrayRaw(document, 'lines') AS line,
    arrayEnumerate(JSONExtractArrayRaw(document, 'lines')) AS line_number
COMMENT 'The lines of issued documents, those of credit notes negative';

-- Line items as before, with their charge, and with those that re-ratings reverse (2 takes used
-- seconds off, 3 adds voided ones).
CREATE OR REPLACE VIEW charge_items AS
WITH
    -- Each segment of an hour, and each consumed amount, with its charge.
    items AS
    (
        SELECT
            h.tenant AS tenant, h.charge AS charge, s.project AS project, s.lease AS lease,
            h.session AS session, s.node AS node, s.region AS region,
            h.hour + h.from AS start, h.hour + h.to AS end, h.day AS day,
            h.billing_period AS billing_period,
            transform(h.kind, [0, 1], ['usage', 'void'], 'rerate') AS kind,
            s.labels AS labels, 'unit-second' AS base_unit,
            toInt256(h.held) * 1000000 * if(h.kind IN (0, 3), 1, -1) * h.seconds AS nano
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
    currency,
    charge
FROM lines
SETTINGS do_not_merge_across_partitions_select_final = 1, join_use_nulls = 0
COMMENT 'Line items with their charge, as exports need them; line_items is for all others';

CREATE OR REPLACE VIEW line_items AS
SELECT * EXCEPT (charge) FROM charge_items
COMMENT 'Their amounts add up to the bill. What is not settled yet costs 0, in currency ""';
