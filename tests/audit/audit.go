// Package audit is a second opinion on every bill: a model of the rules of money that shares no
// code with the product and is as naive as it can be. It puts every second of every session and
// SKU into a map, looks the rules up anew for each of them, adds fractions and rounds once. A
// catalog and events come in, the settled summary and the rejected events go out; it is slow,
// trusts its catalog to be valid, and does no I/O.
package audit

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// header is the first line of the summary.
const header = "tenant,billing_period,sku,purchase,band,base_quantity,base_unit,amount,currency\n"

// Rate returns the summary CSV of the events under the catalog's documents (YAML or JSON), and one
// "ID: reason" for each event that is refused, in the events' order. Events are the lines of a
// file, without their line ends; blank ones are skipped. An error says that the catalog is not
// readable.
func Rate(catalogYAML []byte, events [][]byte) (csv string, rejected []string, err error) {
	a, rejected, err := run(catalogYAML, events, false)
	if err != nil {
		return "", nil, err
	}
	return a.summary(), rejected, nil
}

// run takes all events in; closes count where closing is set.
func run(catalogYAML []byte, events [][]byte, closing bool) (*auditor, []string, error) {
	cat, err := parseCatalog(catalogYAML)
	if err != nil {
		return nil, nil, err
	}
	a := &auditor{
		cat:      cat,
		closing:  closing,
		sessions: map[sessionKey]*session{},
		voided:   map[sessionKey]map[int64]int{},
		used:     map[series]map[int64]int{},
		consumed: map[[4]string]*consumption{},
		charges:  map[charge]*big.Rat{},
		closes:   map[closeKey]int{},
		accounts: map[accountKey]account{},
	}
	refused := make([]string, len(events))
	for _, market := range []bool{true, false} {
		for i, line := range events {
			if strings.TrimSpace(string(line)) == "" {
				continue
			}
			e := parseEvent(line)
			if (e.kind == kindMarket) == market {
				a.place = i
				refused[i] = a.take(e)
				if refused[i] != "" {
					refused[i] = fmt.Sprintf("%s: %s", e.name(i+1), refused[i])
				}
			}
		}
	}
	var rejected []string
	for _, line := range refused {
		if line != "" {
			rejected = append(rejected, line)
		}
	}
	a.priceSeconds()
	a.priceConsumed()
	return a, rejected, nil
}

type sessionKey struct{ tenant, session string }

type series struct {
	sessionKey
	sku string
}

// session holds the facts of a session that never change, as one text, and what it holds.
type session struct {
	facts            string
	purchase, region string
	held             map[string]*big.Rat
	names            [dimensions]string
}

// consumption is an amount that was consumed, as its first report says.
type consumption struct {
	tenant, sku, purchase, region string
	second                        int64
	amount                        *big.Rat
	names                         [dimensions]string
	place                         int // of its event
}

type auditor struct {
	cat      *catalog
	sessions map[sessionKey]*session
	voided   map[sessionKey]map[int64]int // the place of the first event that says so
	used     map[series]map[int64]int     // the same
	consumed map[[4]string]*consumption
	charges  map[charge]*big.Rat

	closing  bool
	place    int // of the event that is taken
	closes   map[closeKey]int
	accounts map[accountKey]account
}

// take accepts an event, or says why not; the order of the checks is the contract's.
func (a *auditor) take(e *event) string {
	if e.reason != "" {
		return e.reason
	}
	if e.kind == kindMarket {
		return a.takeMarket(e)
	}
	if e.kind == kindOther {
		return ""
	}
	if a.cat.tenants[e.tenant] == nil {
		return "no_tenant"
	}
	if e.kind == kindClose && !a.closing {
		return ""
	}
	if !e.windowOK() {
		return "invalid_window"
	}
	switch e.kind {
	case kindClose:
		return a.takeClose(e)
	case kindVoid:
		key := sessionKey{e.tenant, e.session}
		if a.voided[key] == nil {
			a.voided[key] = map[int64]int{}
		}
		for s := e.start.Unix(); s < e.end.Unix(); s++ {
			first(a.voided[key], s, a.place)
		}
		return ""
	case kindConsumed:
		return a.takeConsumed(e)
	default:
		return a.takeHeld(e)
	}
}

func (a *auditor) takeMarket(e *event) string {
	price, ok := decimal(e.price, 12)
	if !ok {
		return "invalid_amount"
	}
	if !a.cat.marketFits(e) {
		return "price_mismatch"
	}
	a.cat.market = append(a.cat.market, marketPrice{
		e.sku, e.region, e.currency, e.per, e.at, price,
	})
	return ""
}

func (a *auditor) takeConsumed(e *event) string {
	amounts, ok := decimals(e.amounts, 9)
	if !ok {
		return "invalid_amount"
	}
	purchase := cmp.Or(e.purchase, "on_demand")
	for sku := range amounts {
		q := a.cat.quote(e.tenant, sku, purchase, e.region, e.at.Unix())
		if q == nil || q.price.per != "unit" {
			return "no_price"
		}
	}
	for sku, amount := range amounts {
		key := [4]string{e.tenant, e.source, e.id, sku}
		if a.consumed[key] == nil {
			a.consumed[key] = &consumption{
				e.tenant, sku, purchase, e.region, e.at.Unix(), amount, e.names(), a.place,
			}
		}
	}
	return ""
}

func (a *auditor) takeHeld(e *event) string {
	amounts, ok := decimals(e.amounts, 3)
	if !ok {
		return "invalid_amount"
	}
	key := sessionKey{e.tenant, e.session}
	known := a.sessions[key]
	if known != nil {
		if known.facts != e.facts() {
			return "session_conflict"
		}
		for sku, amount := range amounts {
			if held := known.held[sku]; held != nil && held.Cmp(amount) != 0 {
				return "session_conflict"
			}
		}
	}
	covered := map[string][]int64{}
	for sku := range amounts {
		seconds, ok := a.cover(e, sku)
		if !ok {
			return "no_price"
		}
		covered[sku] = seconds
	}
	if known == nil {
		known = &session{e.facts(), e.purchase, e.region, map[string]*big.Rat{}, e.names()}
		a.sessions[key] = known
	}
	for sku, amount := range amounts {
		known.held[sku] = amount
		name := series{key, sku}
		if a.used[name] == nil {
			a.used[name] = map[int64]int{}
		}
		for _, s := range covered[sku] {
			first(a.used[name], s, a.place)
		}
	}
	return ""
}

// cover lists the seconds that the event covers of the SKU; false if any has no price.
func (a *auditor) cover(e *event, sku string) ([]int64, bool) {
	anchor := e.sessionStart.Unix()
	first := a.cat.quote(e.tenant, sku, e.purchase, e.region, anchor)
	if first == nil || first.price.per == "unit" {
		return nil, false
	}
	step := first.price.increment
	var seconds []int64
	add := func(from, to int64) {
		from, to = from-anchor, to-anchor
		if from >= to {
			return
		}
		for from%step != 0 {
			from--
		}
		for to%step != 0 {
			to++
		}
		for s := from; s < to; s++ {
			seconds = append(seconds, anchor+s)
		}
	}
	add(e.start.Unix(), e.end.Unix())
	if !e.resumed {
		add(anchor, anchor+first.price.minimum)
	}
	known := a.used[series{sessionKey{e.tenant, e.session}, sku}]
	for _, s := range seconds {
		if _, ok := known[s]; ok {
			continue // it has a price
		}
		q := a.cat.quote(e.tenant, sku, e.purchase, e.region, s)
		if q == nil || q.price.per == "unit" {
			return nil, false
		}
	}
	return seconds, true
}

// first keeps the place of the first event that says something of a second.
func first(places map[int64]int, second int64, place int) {
	if _, ok := places[second]; !ok {
		places[second] = place
	}
}

func (a *auditor) priceSeconds() {
	type where struct {
		charge  charge
		billing string
	}
	for name, seconds := range a.used {
		facts, voided := a.sessions[name.sessionKey], a.voided[name.sessionKey]
		counts := map[where]int64{}
		for s, place := range seconds {
			q := a.cat.quote(name.tenant, name.sku, facts.purchase, facts.region, s)
			c := q.charge(name.tenant, name.sku, s)
			counts[where{c, a.billing(c, place)}]++
			if taken, ok := voided[s]; ok {
				counts[where{c, a.billing(c, max(place, taken))}]--
			}
		}
		for at, count := range counts {
			quantity := new(big.Rat).Mul(facts.held[name.sku], big.NewRat(count, 1))
			a.add(at.charge, quantity)
			a.post(at.charge, at.billing, quantity, facts.names)
		}
	}
}

func (a *auditor) priceConsumed() {
	for _, c := range a.consumed {
		q := a.cat.quote(c.tenant, c.sku, c.purchase, c.region, c.second)
		key := q.charge(c.tenant, c.sku, c.second)
		a.add(key, c.amount)
		a.post(key, a.billing(key, c.place), c.amount, c.names)
	}
}

func (a *auditor) add(key charge, quantity *big.Rat) {
	if a.charges[key] == nil {
		a.charges[key] = new(big.Rat)
	}
	a.charges[key].Add(a.charges[key], quantity)
}

// summary adds up the charges, each rounded once, and prints them.
func (a *auditor) summary() string {
	type line struct{ tenant, period, sku, purchase, band, unit, currency string }
	type sum struct{ quantity, amount *big.Rat }
	sums := map[line]sum{}
	for c, quantity := range a.charges {
		key := line{
			c.tenant, c.period.String(), c.sku, c.price.purchase, c.band, "unit-second",
			c.price.book.currency,
		}
		if c.price.per == "unit" {
			key.unit = "unit"
		}
		total, ok := sums[key]
		if !ok {
			total = sum{new(big.Rat), new(big.Rat)}
			sums[key] = total
		}
		total.quantity.Add(total.quantity, quantity)
		total.amount.Add(total.amount, round12(c.cost(quantity)))
	}
	var lines [][]string
	for k, v := range sums {
		if v.quantity.Sign() != 0 {
			lines = append(lines, []string{
				k.tenant, k.period, k.sku, k.purchase, k.band,
				v.quantity.FloatString(9), k.unit, v.amount.FloatString(12), k.currency,
			})
		}
	}
	slices.SortFunc(lines, slices.Compare)
	var out strings.Builder
	out.WriteString(header)
	for _, l := range lines {
		out.WriteString(strings.Join(l, ",") + "\n")
	}
	return out.String()
}
