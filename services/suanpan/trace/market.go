package trace

import (
	"math/rand/v2"
	"strconv"
)

// MarketSource is the source of generated market prices.
const MarketSource = "/replay/market"

// A generated market price is a whole number of steps, in hundredths of the currency.
const (
	marketEvery   int64 = 6 * 3600 // seconds between prices
	marketStep    int64 = 20
	marketLow     int64 = 120
	marketMiddle  int64 = 260
	marketHigh    int64 = 600
	marketEvening int64 = 60 // added where the day's demand is highest
)

// AppendMarket appends market prices of gpu.openb per hour, as events in JSON lines: one every six
// hours from a second on, for some days. They walk at random between 1.20 and 6.00 and back to the
// middle, and are lower at night and higher in the evening in UTC+8. Equal arguments append equal
// bytes.
func AppendMarket(dst []byte, seed uint64, from int64, days int) []byte {
	random := rand.New(rand.NewPCG(seed, 3))
	level := marketMiddle
	for at := from; at < from+int64(days)*86_400; at += marketEvery {
		level += (random.Int64N(5) - 2) * marketStep
		level += (marketMiddle - level) / 8
		price := level
		switch hour := (at/3600 + 8) % 24; {
		case hour < 8:
			price -= marketEvening
		case hour >= 14:
			price += marketEvening
		}
		price = max(marketLow, min(marketHigh, price/marketStep*marketStep))
		dst = appendPrice(dst, at, price)
	}
	return dst
}

func appendPrice(dst []byte, at, hundredths int64) []byte {
	second := string(appendTime(nil, at))
	dst = append(dst, `{"specversion":"1.0","type":"suanpan.market.price.v1","source":`...)
	dst = appendQuoted(dst, MarketSource)
	dst = append(dst, `,"id":"gpu.openb-`...)
	dst = strconv.AppendInt(dst, at, 10)
	dst = append(dst, `","time":"`+second+`","data":{"sku":"gpu.openb","region":"`+Region+
		`","price":"`...)
	dst = appendMilli(dst, hundredths*10)
	return append(dst, `","per":"hour","time":"`+second+`"}}`+"\n"...)
}
