package exporter

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	descSessions = prometheus.NewDesc("suanpan_exporter_sessions", "Sessions that go on.", nil, nil)
	descEvents   = prometheus.NewDesc("suanpan_exporter_events_total",
		"Usage events that were stored in the spool.", nil, nil)
	descSent = prometheus.NewDesc("suanpan_exporter_sent_total",
		"Usage events that the log has acknowledged.", nil, nil)
	descUp = prometheus.NewDesc("suanpan_exporter_source_up",
		"Whether a source of leases answered when it was last asked.", []string{"source"}, nil)
	descFailures = prometheus.NewDesc("suanpan_exporter_source_failures_total",
		"Times that a source of leases did not answer.", []string{"source"}, nil)
	descSpoolRecords = prometheus.NewDesc("suanpan_exporter_spool_records",
		"Usage events that are not sent yet.", nil, nil)
	descSpoolBytes = prometheus.NewDesc("suanpan_exporter_spool_bytes",
		"Size of the spool on disk.", nil, nil)
	descSpoolOldest = prometheus.NewDesc("suanpan_exporter_spool_oldest_seconds",
		"Age of the oldest event that is not sent yet; 0: there is none.", nil, nil)
	descSpoolFull = prometheus.NewDesc("suanpan_exporter_spool_full_total",
		"Times that the spool had no room: windows grew instead.", nil, nil)
	descSpoolLost = prometheus.NewDesc("suanpan_exporter_spool_lost_total",
		"Events that were damaged on disk: each is usage that nobody is billed for.", nil, nil)
	descTooOld = prometheus.NewDesc("suanpan_exporter_unreported_seconds_total",
		"Session-seconds that were too long ago to be reported when they became known.", nil, nil)
	descEarly = prometheus.NewDesc("suanpan_exporter_overreported_seconds_total",
		"Session-seconds that were reported before a source told of an earlier end.", nil, nil)
	descCrowded = prometheus.NewDesc("suanpan_exporter_crowded_devices",
		"Devices of which leases hold more than there is.", nil, nil)
	descWaiting = prometheus.NewDesc("suanpan_exporter_waiting_leases",
		"Leases that do not begin because devices of theirs are lost, or unknown.", nil, nil)
	descTwice = prometheus.NewDesc("suanpan_exporter_conflicts_total",
		"Observations of a lease that another allocation had at the time.", nil, nil)
)

// Describe sends the metrics' descriptions. It is part of prometheus.Collector.
func (e *Exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descSessions, descEvents, descSent, descUp, descFailures, descSpoolRecords, descSpoolBytes,
		descSpoolOldest, descSpoolFull, descSpoolLost, descTooOld, descEarly, descTwice,
		descCrowded, descWaiting,
	} {
		ch <- desc
	}
}

// Collect sends the metrics. It is part of prometheus.Collector.
func (e *Exporter) Collect(ch chan<- prometheus.Metric) {
	stats := e.spool.Stats()
	e.mu.Lock()
	defer e.mu.Unlock()
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	count := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, labels...)
	}
	gauge(descSessions, float64(len(e.engine.Sessions())))
	count(descEvents, float64(e.events))
	count(descSent, float64(e.sent))
	for name, err := range e.answered {
		up := 1.0
		if err != nil {
			up = 0
		}
		gauge(descUp, up, name)
		count(descFailures, float64(e.failures[name]), name)
	}
	gauge(descCrowded, float64(e.crowded))
	gauge(descSpoolRecords, float64(stats.Records))
	gauge(descSpoolBytes, float64(stats.Bytes))
	oldest := 0.0
	if !stats.Oldest.IsZero() {
		oldest = max(0, e.config.Clock().Wall.Sub(stats.Oldest).Seconds())
	}
	gauge(descSpoolOldest, oldest)
	count(descSpoolFull, float64(stats.Full))
	count(descSpoolLost, float64(stats.Lost))
	counts := e.engine.Counts()
	count(descTooOld, counts.TooOld.Seconds())
	count(descEarly, counts.Early.Seconds())
	count(descTwice, float64(counts.Twice))
	gauge(descWaiting, float64(counts.Waiting))
}
