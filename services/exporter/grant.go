package exporter

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/suanpan/suanpan/schemas"
	"github.com/suanpan/suanpan/services/exporter/gauge"
	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
)

const usageTopic = schemas.TopicUsage

// grants turns leases, which name devices in any way, into what the engine takes: UUIDs and SKUs. A
// lease of which a device is not there, or lost, is not usable: it does not begin, and if it began
// it goes on as it was.
func (e *Exporter) grants(leases []lease.Lease) []session.Grant {
	status := e.config.Sampler.Status()
	byName := make(map[string]*gauge.Status, 2*len(status))
	for i := range status {
		d := &status[i]
		byName[d.UUID] = d
		byName[place(d)] = d
	}
	grants := make([]session.Grant, 0, len(leases))
	for i := range leases {
		l := &leases[i]
		g := session.Grant{
			Key: l.Key, Tenant: l.Tenant, Project: l.Project, Lease: l.Lease, Purchase: l.Purchase,
			Region: l.Region, Labels: l.Labels, Held: map[string]int64{},
			Start: l.Start, End: l.End, Resumed: l.Resumed, Unusable: l.Over,
		}
		if g.Region == "" {
			g.Region = e.config.Region
		}
		for sku, milli := range l.Held {
			g.Held[sku] = milli
		}
		for _, device := range l.Devices {
			d := byName[device.Name]
			if d == nil || d.Lost {
				g.Unusable = true
				break
			}
			g.Devices = append(g.Devices, session.Device{UUID: d.UUID, Milli: device.Milli})
			g.Held[d.SKU] += device.Milli
		}
		grants = append(grants, g)
	}
	return grants
}

// place names a device by where it is: "3", or "3.0" for the first MIG device of GPU 3.
func place(d *gauge.Status) string {
	if d.MIG() {
		return fmt.Sprintf("%d.%d", d.Index, d.MIGIndex)
	}
	return fmt.Sprint(d.Index)
}

// telemetry returns what the devices of a window's session did in it, as JSON; nil: not known.
func (e *Exporter) telemetry(w *session.Window) json.RawMessage {
	if len(w.Session.Devices) == 0 {
		return nil
	}
	uuids := make([]string, len(w.Session.Devices))
	for i, d := range w.Session.Devices {
		uuids[i] = d.UUID
	}
	t, ok := e.config.Sampler.Telemetry(uuids, e.config.Zero.Add(w.From),
		e.config.Zero.Add(w.Until))
	if !ok {
		return nil
	}
	text, err := json.Marshal(t)
	if err != nil || strings.EqualFold(string(text), "{}") { // a reading that is no number
		return nil
	}
	return text
}
