package focus

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/suanpan/suanpan/pkg/money"
)

// usage writes the row of a line item.
func (e *export) usage(i *Item) error {
	amount, err := money.ParseSigned(i.Amount)
	if err != nil {
		return fmt.Errorf("parse amount: %w", err)
	}
	r, pack := row{}, i.Package
	if a := e.book.find(i); a != nil {
		g := e.book.group(groupKey{a, i.UsagePeriod, i.SKU, i.Purchase, i.Band})
		g.sum, g.items = g.sum.Add(amount), true
		r = a.base
		r[invoiceDetailID] = g.detail
		if pack == "" {
			pack = g.pack
		}
	} else {
		e.common(&r, i.Tenant, i.Contract, i.Currency, e.zone(i))
		if r[invoiceIssuerName] == "" {
			return errNoProvider
		}
	}
	if err := r.facts(i); err != nil {
		return err
	}
	r.cost(amount)
	switch i.Kind {
	case "usage", "void", "rerate":
		err = r.priced(i, pack)
	case "rounding":
		r[chargeCategory], r[chargeFrequency], r[ownReason] = adjustment, "One-Time", rounding
		r[invoiceDetailID] = adjustmentID(r[invoiceDetailID])
		r[chargeDescription] = "Rounding of " + describe(i.SKU, i.Purchase, i.Band)
	default:
		err = fmt.Errorf("its kind %q is not known", i.Kind)
	}
	if err != nil {
		return err
	}
	return e.put(r[:])
}

func (e *export) zone(i *Item) *time.Location {
	if e.Zone != nil {
		if zone := e.Zone(i.Tenant, i.Contract); zone != nil {
			return zone
		}
	}
	return time.UTC
}

// facts writes what a line item says of itself.
func (r *row) facts(i *Item) error {
	if i.UsagePeriod != i.BillingPeriod {
		r[chargeClass] = correction
	}
	r[chargePeriodStart], r[chargePeriodEnd] = i.UsageStart, i.UsageEnd
	if i.UsageStart == i.UsageEnd { // consumed at an instant: a period has a length
		t, err := time.Parse(time.RFC3339, i.UsageEnd)
		if err != nil {
			return fmt.Errorf("parse end of usage: %w", err)
		}
		r[chargePeriodEnd] = clock(t.Add(time.Second))
	}
	r[regionID], r[regionName] = i.Region, i.Region
	if i.Project != "" {
		r[subAccountID], r[subAccountName], r[subAccountType] = i.Project, i.Project, "Project"
	}
	if i.Session != "" {
		r[resourceID], r[resourceName], r[resourceType] = i.Session, i.Lease, "Session"
	}
	if len(i.Labels) > 0 {
		labels, err := json.Marshal(i.Labels)
		if err != nil {
			return fmt.Errorf("encode labels: %w", err)
		}
		r[tags] = string(labels)
	}
	r[skuID] = i.SKU
	r[ownPurchase], r[ownBand], r[ownUsagePeriod], r[ownDay] = i.Purchase, i.Band, i.UsagePeriod, i.Day
	r[ownKind], r[ownLease], r[ownNode] = i.Kind, i.Lease, i.Node
	s := serviceOf(i.SKU)
	s.set(r)
	r[skuMeter] = s.name
	return nil
}

// priced writes the quantity of a line item and its price.
func (r *row) priced(i *Item, pack string) error {
	of, ok := pers[i.Per]
	if !ok {
		return fmt.Errorf("its price is per %q", i.Per)
	}
	quantity, err := money.ParseSigned(i.BaseQuantity)
	if err != nil {
		return fmt.Errorf("parse quantity: %w", err)
	}
	price, err := money.ParseExact(i.UnitPrice)
	if err != nil {
		return fmt.Errorf("parse unit price: %w", err)
	}
	size := money.MustParse("1")
	if pack != "" {
		if size, err = money.Parse(pack); err != nil || size.Sign() <= 0 {
			return fmt.Errorf("its package is %q units", pack)
		}
	}
	divisor, err := size.Scaled(money.MaxFractionDigits)
	if err != nil {
		return fmt.Errorf("package: %w", err)
	}
	divisor.Mul(divisor, big.NewInt(of.seconds))
	priced := quantity.MulRatio(packScale, divisor, quantityScale, money.HalfUp)
	price = price.Round(priceScale, money.HalfUp)
	s := serviceOf(i.SKU)
	r[pricingQuantity], r[pricingUnit] = priced.String(), s.pricingUnit(of, pack)
	for _, c := range []int{
		listUnitPrice, contractedUnitPrice, localListUnitPrice,
		localContractedUnitPrice,
	} {
		r[c] = price.String()
	}
	cost := price.Mul(priced).String()
	r[listCost], r[contractedCost] = cost, cost
	r[effectiveCost], r[localEffectiveCost] = i.EffectiveAmount, i.EffectiveAmount
	r[chargeCategory], r[chargeFrequency] = usage, "Usage-Based"
	r[consumedQuantity], r[consumedUnit] = quantity.String(), s.units
	if i.BaseUnit == "unit-second" {
		r[consumedUnit] = s.unit + "-Seconds"
	}
	r[pricingCategory] = "Standard"
	switch i.Purchase {
	case "spot":
		r[pricingCategory] = "Dynamic"
	case "reserved":
		r[pricingCategory] = "Committed"
	}
	r[skuPriceID] = strings.Join([]string{i.SKU, i.Purchase, i.Band, i.Per}, "/")
	r[chargeDescription] = describe(i.SKU, i.Purchase, i.Band)
	return nil
}

// packScale is one, in the decimals of a package.
var packScale = new(big.Int).Exp(big.NewInt(10), big.NewInt(money.MaxFractionDigits), nil)

// describe names what is charged for.
func describe(sku, purchase, band string) string {
	parts := []string{sku, strings.ReplaceAll(purchase, "_", "-")}
	if band != "" && band != "standard" {
		parts = append(parts, band)
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}
