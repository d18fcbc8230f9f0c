-- Where the log decided on a document. What became of it later does not change what was known before
-- others were decided on: a check of these needs both places.
ALTER TABLE documents ADD COLUMN IF NOT EXISTS
    decided Int64 DEFAULT offset COMMENT 'in the billing topic, of the decision' AFTER offset;
