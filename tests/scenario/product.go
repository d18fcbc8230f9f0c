package scenario

import (
	"fmt"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Product is the engine that bills as `suanpan rate` does.
type Product struct{}

// Bill implements [Engine].
func (Product) Bill(text string, events []string) (summary, refused []string, err error) {
	documents, err := catalog.Parse("catalog", []byte(text))
	if err != nil {
		return nil, nil, err
	}
	prices, err := catalog.New(documents)
	if err != nil {
		return nil, nil, err
	}
	offline := rating.NewOffline(prices)
	parsed := make([]metering.Event, len(events))
	why := make([]*metering.Rejection, len(events))
	parser := metering.NewParser()
	for i := range events {
		why[i] = parser.Parse([]byte(events[i]), &parsed[i])
		if why[i] == nil && parsed[i].Kind == metering.MarketPrice {
			why[i] = offline.Price(&parsed[i])
		}
	}
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
	settled, err := rating.Settle(offline.Ledger().Sums(), prices)
	return rating.Summary(settled), refused, err
}
