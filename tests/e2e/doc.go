// Package e2e tests the built command as a user runs it: its services as processes, against the
// embedded Kafka and a real Apache Kafka, with the real ClickHouse engine. It needs the build tag
// e2e; see tests/run.
package e2e
