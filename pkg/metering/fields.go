package metering

import (
	"maps"
	"slices"
	"strconv"
)

// The limits as messages show them.
var (
	maxString = strconv.Itoa(MaxStringBytes)
	maxDigits = strconv.Itoa(MaxAmountDigits)
)

// schemas are the event types and the fields of their data. The JSON Schemas in schemas/events say
// the same for others; a test holds the two together.
var schemas = map[string]*schema{
	"suanpan.usage.held.v1": {Held, []field{
		{"tenant", true, readTenant},
		{"project", true, readProject},
		{"lease", true, readLease},
		{"session", true, readSession},
		{"session_start", true, readSessionStart},
		{"purchase", true, readPurchase},
		{"start", true, readStart},
		{"end", true, readEnd},
		{"held", true, readHeld},
		{"region", false, readRegion},
		{"node", false, readNode},
		{"resumed", false, readResumed},
		{"labels", false, readLabels},
		{"devices", false, readStrings},
		{"telemetry", false, readObject},
	}},
	"suanpan.usage.consumed.v1": {Consumed, []field{
		{"tenant", true, readTenant},
		{"project", true, readProject},
		{"time", true, readAt},
		{"consumed", true, readConsumed},
		{"purchase", false, readPurchase},
		{"region", false, readRegion},
		{"labels", false, readLabels},
	}},
	"suanpan.usage.void.v1": {Void, []field{
		{"tenant", true, readTenant},
		{"session", true, readSession},
		{"start", true, readStart},
		{"end", true, readEnd},
		{"reason", true, readString},
		{"by", true, readString},
	}},
	"suanpan.market.price.v1": {MarketPrice, []field{
		{"sku", true, readSKU},
		{"region", true, readFilledRegion},
		{"price", true, readPrice},
		{"time", true, readAt},
		{"currency", false, readCurrency},
		{"per", false, readPer},
	}},
	"suanpan.outage.v1": {Outage, []field{
		{"tenant", true, readTenant},
		{"start", true, readStart},
		{"end", true, readEnd},
		{"cause", true, readString},
		{"sessions", false, readStrings},
		{"nodes", false, readStrings},
	}},
	"suanpan.checkpoint.v1": {Checkpoint, []field{
		{"tenant", true, readTenant}, {"session", true, readSession}, {"time", true, readAt},
	}},
	"suanpan.lease.interrupted.v1": {Interrupted, []field{
		{"tenant", true, readTenant},
		{"lease", true, readLease},
		{"session", true, readSession},
		{"time", true, readAt},
		{"by", true, readString},
		{"reason", false, readString},
	}},
	"suanpan.queue.v1": {Queue, []field{
		{"pool", true, readString},
		{"time", true, readAt},
		{"depth", true, readCount},
		{"wait_seconds", true, readCount},
	}},
	"suanpan.rerate.v1": {Rerate, []field{
		{"tenant", true, readTenant},
		{"from", true, readStart},
		{"until", true, readEnd},
		{"catalog_offset", true, readCatalogOffset},
	}},
	"suanpan.period.close.v1": {PeriodClose, []field{
		{"tenant", true, readTenant},
		{"contract", false, readContract},
		{"from", true, readStart},
		{"until", true, readEnd},
		{"catalog_offset", false, readCatalogOffset},
		{"market_offset", false, readMarketOffset},
	}},
}

// Types returns the CloudEvents types that are known, in ascending order.
func Types() []string { return slices.Sorted(maps.Keys(schemas)) }

// text reads a string within the limit. in and name say where it is, as "data." and "tenant" do.
func (p *Parser) text(in, name string) string {
	if p.peek() != '"' {
		p.fail(in, name, " is not a string")
		p.skip()
		return ""
	}
	s := p.str()
	if len(s) > MaxStringBytes {
		p.fail(in, name, " is longer than ", maxString, " bytes")
	}
	return s
}

// filled reads a string of data that must not be empty.
func (p *Parser) filled(name string) string {
	s := p.text("data.", name)
	if s == "" {
		p.fail("data.", name, " is empty")
	}
	return s
}

func (p *Parser) instant(in, name string) Instant {
	i, err := ParseInstant(p.text(in, name))
	if err != nil {
		p.fail(in, name, ": ", err.Error())
	}
	return i
}

func readTenant(p *Parser, name string)       { p.event.Tenant = p.filled(name) }
func readProject(p *Parser, name string)      { p.event.Project = p.filled(name) }
func readLease(p *Parser, name string)        { p.event.Lease = p.filled(name) }
func readSession(p *Parser, name string)      { p.event.Session = p.filled(name) }
func readSKU(p *Parser, name string)          { p.event.SKU = p.filled(name) }
func readContract(p *Parser, name string)     { p.event.Contract = p.text("data.", name) }
func readString(p *Parser, name string)       { p.filled(name) }
func readRegion(p *Parser, name string)       { p.event.Region = p.text("data.", name) }
func readFilledRegion(p *Parser, name string) { p.event.Region = p.filled(name) }
func readNode(p *Parser, name string)         { p.event.Node = p.text("data.", name) }
func readCurrency(p *Parser, name string)     { p.event.Currency = p.text("data.", name) }
func readPer(p *Parser, name string)          { p.event.Per = p.text("data.", name) }
func readSessionStart(p *Parser, name string) { p.event.SessionStart = p.instant("data.", name) }
func readStart(p *Parser, name string)        { p.event.Start = p.instant("data.", name) }
func readEnd(p *Parser, name string)          { p.event.End = p.instant("data.", name) }
func readAt(p *Parser, name string)           { p.event.At = p.instant("data.", name) }

func readPurchase(p *Parser, name string) {
	purchase := Purchase(p.text("data.", name))
	if !purchase.Valid() && (purchase != "" || p.event.Kind != Consumed) {
		p.fail("data.", name, " is none of on_demand, reserved, spot, per_task")
	}
	p.event.Purchase = purchase
}

func readResumed(p *Parser, name string) {
	switch p.peek() {
	case 't':
		p.event.Resumed = true
	case 'f':
	default:
		p.fail("data.", name, " is neither true nor false")
	}
	p.skip()
}

// readObject accepts any object: telemetry is archived as it is and never billed.
func readObject(p *Parser, name string) {
	if p.peek() != '{' {
		p.fail("data.", name, " is not an object")
	}
	p.skip()
}

func readCatalogOffset(p *Parser, name string) { p.event.CatalogOffset = p.count(name) }
func readMarketOffset(p *Parser, name string)  { p.event.MarketOffset = p.count(name) }

// readCount accepts a whole number. It is archived and read by others.
func readCount(p *Parser, name string) { p.count(name) }

func (p *Parser) count(name string) int64 {
	v := p.value()
	if plainDigits(v) && len(v) <= MaxAmountDigits {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil {
			return n
		}
	}
	p.fail("data.", name, " is not a whole number of at most ", maxDigits, " digits")
	return 0
}

func readStrings(p *Parser, name string) {
	if p.peek() != '[' {
		p.fail("data.", name, " is not a list of strings")
		p.skip()
		return
	}
	p.begin()
	for p.more(']') {
		p.text("an element of data.", name)
	}
	p.end()
}

// members calls read for each member of an object of at most limit members.
func (p *Parser) members(name string, limit int, read func(key string)) {
	if p.peek() != '{' {
		p.fail("data.", name, " is not an object")
		p.skip()
		return
	}
	count := 0
	p.begin()
	for p.more('}') {
		key := p.name()
		count++
		switch {
		case count > limit:
			p.fail("data.", name, " has more than ", strconv.Itoa(limit), " members")
			p.skip()
			continue
		case key == "":
			p.fail("data.", name, " has a member without a name")
		case len(key) > MaxStringBytes:
			p.fail("data.", name, " has a name that is longer than ", maxString, " bytes: ", clip(key))
		}
		read(key)
	}
	p.end()
}

func readLabels(p *Parser, name string) {
	p.members(name, MaxLabels, func(key string) {
		p.event.Labels = append(p.event.Labels, Label{key, p.text("data.labels.", key)})
	})
}

func readHeld(p *Parser, name string) {
	p.amounts(name, MaxHeldPlaces, func(sku string, q Quantity) Amount {
		return Amount{SKU: sku, Milli: int64(q.lo)}
	})
}

func readConsumed(p *Parser, name string) {
	p.amounts(name, MaxPlaces, func(sku string, q Quantity) Amount {
		return Amount{SKU: sku, Nano: q}
	})
}

// amounts reads SKUs and their amounts. Amounts are judged later than the event's schema, so what
// is wrong with one is only remembered.
func (p *Parser) amounts(name string, places int, amount func(string, Quantity) Amount) {
	p.members(name, MaxSKUs, func(sku string) {
		q, err := parsePlain(p.decimal(), places)
		if err != nil && p.event.amountProblem == "" {
			p.event.amountProblem = "data." + name + "." + sku + ": " + err.Error()
		}
		p.event.Amounts = append(p.event.Amounts, amount(sku, q))
	})
	if len(p.event.Amounts) == 0 {
		p.fail("data.", name, " is empty")
	}
}

func readPrice(p *Parser, name string) {
	p.event.Price = p.decimal()
	if _, err := parsePlain(p.event.Price, MaxPricePlaces); err != nil {
		p.event.amountProblem = "data." + name + ": " + err.Error()
	}
}

// decimal reads the text of a decimal: of a string, or of a number, which is never made a float.
func (p *Parser) decimal() string {
	if p.peek() == '"' {
		return p.str()
	}
	return p.value()
}
