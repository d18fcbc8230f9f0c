package scenario

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Product is the engine that bills as `suanpan rate` does.
type Product struct{}

// Bill implements [Engine].
func (Product) Bill(text string, events []string) (summary, refused []string, err error) {
	offline, prices, refused, err := rate(text, events, false)
	if err != nil {
		return nil, nil, err
	}
	settled, err := rating.Settle(offline.Ledger().Sums(), prices)
	return rating.Summary(settled), refused, err
}

// Documents implements [Engine].
func (Product) Documents(text string, events []string) (documents, refused []string, err error) {
	offline, prices, refused, err := rate(text, events, true)
	if err != nil {
		return nil, nil, err
	}
	end := billing.Offline{AsOf: metering.MaxSecond - 1}
	for d, err := range end.Bill(offline.Ledger(), prices) {
		if err != nil {
			return nil, nil, err
		}
		if err := d.CheckSums(); err != nil {
			return nil, nil, err
		}
		documents = append(documents, print(d))
	}
	return documents, refused, nil
}

func rate(text string, events []string, closing bool) (*rating.Offline, *catalog.Catalog, []string,
	error,
) {
	documents, err := catalog.Parse("catalog", []byte(text))
	if err != nil {
		return nil, nil, nil, err
	}
	prices, err := catalog.New(documents)
	if err != nil {
		return nil, nil, nil, err
	}
	offline := rating.NewOffline(prices)
	if closing {
		offline.ObeyCloses()
	}
	parsed := make([]metering.Event, len(events))
	why := make([]*metering.Rejection, len(events))
	parser := metering.NewParser()
	for i := range events {
		why[i] = parser.Parse([]byte(events[i]), &parsed[i])
		if why[i] == nil && parsed[i].Kind == metering.MarketPrice {
			why[i] = offline.Price(&parsed[i])
		}
	}
	var refused []string
	for i := range events {
		if why[i] == nil {
			why[i] = offline.Rate(&parsed[i])
		}
		if why[i] != nil {
			name := parsed[i].ID
			if name == "" || why[i].Reason == metering.InvalidJSON {
				name = fmt.Sprintf("line %d", i+1) // as `suanpan rate` names it
			}
			refused = append(refused, fmt.Sprintf("%s: %s", name, why[i].Reason))
		}
	}
	return offline, prices, refused, nil
}
