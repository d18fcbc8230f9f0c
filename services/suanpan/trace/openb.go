package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/suanpan/suanpan/pkg/metering"
)

// OpenBSource is the source of events that come from an openb trace.
const OpenBSource = "/replay/openb"

// The columns of an openb pod list, in their order.
var openbColumns = []string{
	"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
	"creation_time", "deletion_time", "scheduled_time",
}

const (
	openbTenants = 20
	maxNumber    = 1e12 // of any number in the trace
	maxGPUs      = 1024 // of one pod
)

// ReadOpenB reads the pod list of the Alibaba GPU trace of 2023 ("openb"), whose times are seconds
// from the start that is given. A pod with GPUs that was scheduled is a session, from then to its
// deletion; pods without, and pods that were never scheduled, are passed over. The file is read
// strictly: an error names line and column.
func ReadOpenB(r io.Reader, start int64) ([]Session, error) {
	reader := csv.NewReader(r)
	reader.ReuseRecord = true
	reader.FieldsPerRecord = len(openbColumns)
	header, err := reader.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("read trace: it is empty")
	case err != nil:
		return nil, fmt.Errorf("read trace: %w", err)
	case !slices.Equal(header, openbColumns):
		return nil, fmt.Errorf("read trace: line 1: the columns are not %s, as in an openb pod list",
			strings.Join(openbColumns, ","))
	}
	var sessions []Session
	lines := make(map[string]int) // by name
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return sessions, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read trace: %w", err)
		}
		line, _ := reader.FieldPos(0)
		p := pod{record: record}
		s, ok := p.session(start)
		if first, twice := lines[s.Name]; twice {
			p.fail("name", "is %q, like that of line %d", s.Name, first)
		}
		if p.err != nil {
			return nil, fmt.Errorf("read trace: line %d, %w", line, p.err)
		}
		lines[s.Name] = line
		if len(lines) > MaxSessions {
			return nil, fmt.Errorf("read trace: line %d: there are more than %d pods", line, MaxSessions)
		}
		if ok {
			sessions = append(sessions, s)
		}
	}
}

// pod is one record of the trace. err is the first thing that is wrong with it.
type pod struct {
	record []string
	err    error
}

// session makes a pod a session; ok is false if it is none.
func (p *pod) session(start int64) (s Session, ok bool) {
	s.Name = p.name()
	s.Tenant = tenantOf(s.Name, openbTenants)
	cpu := p.number("cpu_milli", maxNumber)
	memory := p.number("memory_mib", maxNumber) * 1000 / 1024 // cut, so nothing unused is billed
	count := p.number("num_gpu", maxGPUs)
	share := p.number("gpu_milli", maxNumber/maxGPUs)
	s.Held = held(cpu, count*share, memory)
	s.Project = strings.ToLower(p.text("qos"))
	s.Purchase = p.purchase()
	p.number("creation_time", maxNumber)
	s.End = start + p.number("deletion_time", maxNumber)
	if p.text("scheduled_time") == "" {
		return s, false
	}
	s.Start = start + p.number("scheduled_time", maxNumber)
	return s, count > 0
}

func (p *pod) text(column string) string {
	return p.record[slices.Index(openbColumns, column)]
}

// fail notes what is wrong with a column. Only the first is told.
func (p *pod) fail(column, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("column %s "+format, append([]any{column}, args...)...)
	}
}

func (p *pod) name() string {
	name := p.text("name")
	switch {
	case name == "":
		p.fail("name", "is empty")
	case len(name) > metering.MaxStringBytes:
		p.fail("name", "is longer than %d bytes", metering.MaxStringBytes)
	case !utf8.ValidString(name):
		p.fail("name", "is not UTF-8")
	}
	return strings.Clone(name)
}

// number reads a whole number of digits alone.
func (p *pod) number(column string, limit int64) int64 {
	text := p.text(column)
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) > limit {
		p.fail(column, "is %q, not a whole number from 0 to %d", text, limit)
		return 0
	}
	return int64(n)
}

// purchase says how a class of service is bought.
func (p *pod) purchase() metering.Purchase {
	switch qos := p.text("qos"); qos {
	case "LS", "Burstable":
		return metering.OnDemand
	case "BE":
		return metering.Spot
	case "Guaranteed":
		return metering.Reserved
	default:
		p.fail("qos", "is %q, none of LS, Burstable, BE, Guaranteed", qos)
		return ""
	}
}

// tenantOf spreads names over tenants; whoever has the name can tell the tenant.
func tenantOf(name string, tenants int) string {
	return fmt.Sprintf("tenant-%02d", crc32.ChecksumIEEE([]byte(name))%uint32(tenants))
}
