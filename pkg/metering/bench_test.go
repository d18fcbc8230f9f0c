package metering

import "testing"

// heldExample is what an exporter sends once a minute: one session with three SKUs, 450 bytes.
const heldExample = `{"specversion":"1.0","type":"suanpan.usage.held.v1","source":"/nodes/n1",` +
	`"id":"e228","time":"2026-01-05T02:01:00Z","data":{"tenant":"acme","project":"p1",` +
	`"lease":"l0","session":"l0.0","session_start":"2026-01-05T02:00:00Z",` +
	`"purchase":"on_demand","region":"cn-north","start":"2026-01-05T02:00:00Z",` +
	`"end":"2026-01-05T02:01:00Z","held":{"cpu.core":"11.250","gpu.a800-80g":"1",` +
	`"memory.gib":"117.187"},"labels":{"stage":"pretraining","team":"llm"}}}`

func BenchmarkParse(b *testing.B) {
	p, data := NewParser(), []byte(heldExample)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	var e Event
	for b.Loop() {
		if r := p.Parse(data, &e); r != nil || e.Problem() != nil {
			b.Fatal(r, e.Problem())
		}
	}
}

func BenchmarkParseInstant(b *testing.B) {
	for b.Loop() {
		if _, err := ParseInstant("2026-01-05T10:00:00.125+08:00"); err != nil {
			b.Fatal(err)
		}
	}
}
