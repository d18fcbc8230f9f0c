package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
)

func refresh(t *testing.T, p *Prices, now time.Time) {
	t.Helper()
	if err := p.Refresh(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

func TestPrices_ignoresDocuments(t *testing.T) {
	f := func(text, batch, replay, want string) {
		t.Helper()
		p, documents, _ := openPrices(t)
		headers := []Header{{HeaderBatch, []byte(batch)}}
		if replay != "" {
			headers = append(headers, Header{HeaderReplay, []byte(replay)})
		}
		documents.put(noon, text, headers...)
		refresh(t, p, noon)
		switch {
		case want == "" && len(p.Ignored) > 0:
			t.Errorf("ignored: %s", p.Ignored[0].Why)
		case want != "" && (len(p.Ignored) != 1 || !strings.Contains(p.Ignored[0].Why, want)):
			t.Errorf("ignored %v, want one for %q", p.Ignored, want)
		}
		for _, i := range p.Ignored {
			if i.Reason != "" {
				t.Errorf("a document is a dead letter: %s", i.Reason)
			}
		}
	}
	// The longest minimum is 60 s: a version must be known that long before it holds.
	f(bookText("2026-01-05T12:01:00Z", "3"), "second", "", "")
	f(bookText("2026-01-05T12:00:59Z", "3"), "second", "", "starts at 2026-01-05T12:00:59Z, before")
	f(bookText("2026-01-05T12:00:59Z", "3"), "second", "yes", "")
	f(bookText("2026-01-02T00:00:00Z", "3"), "first", "", "")
	f(bookText("2026-01-01T00:00:00Z", "3"), "first", "", "a version is immutable")
	f(strings.ReplaceAll(bookText("2026-01-06T00:00:00Z", "3"), "USD", "EUR"), "second", "",
		"cannot become")
	f(strings.ReplaceAll(acme, "public", "other"), "second", "",
		"starts at 2026-01-01T00:00:00Z, before")
	f(strings.ReplaceAll(acme, "acme", "coral"), "second", "", "")
	f(`{"kind":"Contract","name":"k","tenant":"acme","price_book":"public",`+
		`"effective_from":"2026-01-05T11:00:00Z"}`, "second", "", "before the earliest instant")
	f(acme+"\n---\n"+blue, "first", "", "a record has one document, not 2")
	f(`{"kind":"PriceBook"`, "second", "", "topic/3")
}

func TestPrices_ignoresMarketPrices(t *testing.T) {
	f := func(data, replay string, want metering.Reason, ignored bool) {
		t.Helper()
		p, _, market := openPrices(t)
		text := `{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/m","id":"1","data":` +
			data + `}`
		if strings.Contains(data, "pool") {
			text = strings.ReplaceAll(text, "market.price", "queue")
		}
		var headers []Header
		if replay != "" {
			headers = append(headers, Header{HeaderReplay, []byte(replay)})
		}
		market.put(noon, text, headers...)
		refresh(t, p, noon)
		if (len(p.Ignored) == 1) != ignored || ignored && p.Ignored[0].Reason != want {
			t.Errorf("%s: ignored %+v, want %t for %q", data, p.Ignored, ignored, want)
		}
		q, ok := p.Catalog.Quote(catalog.Query{
			Tenant: "acme", SKU: "gpu", Purchase: "spot", Region: "us",
		}, noon.Add(time.Minute).Unix())
		if !ok || (q.Spot == "1.5") == ignored {
			t.Errorf("%s: spot price %q, ignored: %t", data, q.Spot, ignored)
		}
	}
	price := func(at, more string) string {
		return fmt.Sprintf(`{"sku":"gpu","region":"us","price":"1.5","time":"2026-01-05T%s"%s}`, at, more)
	}
	f(price("12:00:00Z", ""), "", "", false)
	f(price("12:00:30Z", ""), "", "", false)
	f(price("11:59:59.999999999Z", ""), "", "", true)
	f(price("11:59:59Z", ""), "yes", "", false)
	f(price("12:00:30Z", `,"currency":"EUR"`), "", metering.PriceMismatch, true)
	f(price("12:00:30Z", `,"per":"day"`), "", metering.PriceMismatch, true)
	f(price("12:00:30Z", `,"currency":"USD","per":"hour"`), "", "", false)
	f(strings.Replace(price("12:00:30Z", ""), "1.5", "0", 1), "", metering.InvalidAmount, true)
	f(price("yesterday", ""), "", metering.InvalidEvent, true)
	f(`{"pool":"a","time":"2026-01-05T12:00:30Z","depth":1,"wait_seconds":1}`, "", metering.Misrouted, true)
}

func TestPrices_settledOnceBothTopicsAreRead(t *testing.T) {
	end := metering.Instant(noon.UnixNano())
	p, documents, market := openPrices(t)
	if p.Settled(end) {
		t.Error("settled before anything was read")
	}
	refresh(t, p, noon.Add(settleDelay-time.Nanosecond))
	if p.Settled(end) {
		t.Error("settled too early")
	}
	for _, failing := range []*topic{documents, market} {
		failing.err = errFake
		if err := p.Refresh(t.Context(), noon.Add(time.Hour)); err == nil {
			t.Error("refresh hides that a topic cannot be read")
		}
		failing.err = nil
		if p.Settled(end) {
			t.Error("settled, though a topic was not read to its end")
		}
	}
	refresh(t, p, noon.Add(settleDelay))
	if !p.Settled(end) || p.Settled(end+1) {
		t.Error("not settled just to the instant")
	}
}

// TestPrices_readersAgree has a market price published that no price follows yet, and then a book
// that does. One reader reads all along, the other begins when both are there.
func TestPrices_readersAgree(t *testing.T) {
	early, earlyDocuments, earlyMarket := openPrices(t)
	late, lateDocuments, lateMarket := openPrices(t)
	refresh(t, early, noon)
	for _, market := range []*topic{earlyMarket, lateMarket} {
		market.put(noon, `{"specversion":"1.0","type":"suanpan.market.price.v1","source":"/m","id":"1",`+
			`"data":{"sku":"gpu","region":"us","price":"1.5","time":"2026-01-05T12:00:00Z",`+
			`"currency":"EUR"}}`)
	}
	refresh(t, early, noon)
	for _, documents := range []*topic{earlyDocuments, lateDocuments} {
		documents.put(noon, strings.NewReplacer("public", "euro", "USD", "EUR").
			Replace(bookText("2026-01-01T00:00:00Z", "2")), Header{HeaderBatch, []byte("second")})
		documents.put(noon, strings.NewReplacer("public", "euro", "acme", "coral").Replace(acme),
			Header{HeaderBatch, []byte("second")})
	}
	refresh(t, early, noon)
	refresh(t, late, noon)
	for name, reader := range map[string]*Prices{"early": early, "late": late} {
		q, ok := reader.Catalog.Quote(catalog.Query{
			Tenant: "coral", SKU: "gpu", Purchase: "spot", Region: "us",
		}, noon.Unix())
		if !ok || q.Spot != "1.5" {
			t.Errorf("the %s reader's spot price is %q, want 1.5", name, q.Spot)
		}
	}
}
