// Package pipeline holds the loops that turn the log into line items: archive, rate and settle.
// Records and the time come in; rows and commits go out. Each loop does its work in Step calls and
// declares the small interfaces it needs; adapters implement them. It starts no timers and knows
// neither Kafka nor ClickHouse.
package pipeline
