package billing

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/rating"
)

// Offline makes drafts of all that a ledger has: it closes every billing period that has rows or a
// close, in order. It says how to draft; the zero values are the defaults.
type Offline struct {
	TimeZoneData string // version, for the proofs
	LateDays     int    // see [DefaultLateDays]
	AsOf         int64  // second at which the parties are looked up
}

// Bill yields the drafts by tenant, period, contract and currency, each invoice before the credit
// notes that come with it.
func (o Offline) Bill(l *rating.Ledger, from *catalog.Catalog) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		proofs, err := Proofs(l, from)
		if err != nil {
			yield(nil, err)
			return
		}
		accounts := l.Accounts()
		closes := l.Closes().Sorted()
		for _, tenant := range tenants(accounts, closes) {
			documents, err := o.tenant(tenant, accounts, closes, proofs, from)
			if err != nil {
				yield(nil, fmt.Errorf("bill tenant %s: %w", tenant, err))
				return
			}
			for _, d := range documents {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

func tenants(accounts []*rating.Account, closes []rating.Close) []string {
	var names []string
	for _, a := range accounts {
		names = append(names, a.Tenant)
	}
	for i := range closes {
		names = append(names, closes[i].Tenant)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (o Offline) tenant(tenant string, accounts []*rating.Account, closes []rating.Close,
	proofs map[Key]Proof, from *catalog.Catalog,
) ([]*Document, error) {
	type step struct{ period, contract string }
	steps := make(map[step]*rating.Account)
	for i := range closes {
		if closes[i].Tenant == tenant {
			steps[step{closes[i].Period, closes[i].Contract}] = nil
		}
	}
	for _, a := range accounts {
		if a.Tenant == tenant {
			for _, period := range a.Periods() {
				steps[step{period, a.Contract}] = a
			}
		}
	}
	history := NewHistory()
	var documents []*Document
	for _, s := range slices.SortedFunc(maps.Keys(steps), func(a, b step) int {
		return cmp.Or(cmp.Compare(a.period, b.period), cmp.Compare(a.contract, b.contract))
	}) {
		closing := &Closing{
			Tenant: tenant, Contract: s.contract, Period: s.period, Proofs: make(map[string]Proof),
			Catalog: from, History: history, AsOf: o.AsOf, LateDays: o.LateDays,
		}
		if a := steps[s]; a != nil {
			closing.Uses = a.Uses(s.period)
		}
		for k, proof := range proofs {
			if k.Tenant == tenant && k.Contract == s.contract && k.Period == s.period {
				proof.TimeZoneData = o.TimeZoneData
				closing.Proofs[k.Currency] = proof
			}
		}
		made, err := Draft(closing)
		if err != nil {
			return nil, err
		}
		documents = append(documents, made...)
	}
	return documents, nil
}

// Proofs hashes the rows of all invoices that a ledger makes.
func Proofs(l *rating.Ledger, from *catalog.Catalog) (map[Key]Proof, error) {
	hashes := make(map[Key]*rating.RowHash)
	for _, line := range l.RowLines() {
		version, ok := from.BookVersion(line.Charge.Book, line.Charge.BookVersion)
		if !ok {
			return nil, fmt.Errorf("hash rows: price book %s has no version that starts at %d",
				line.Charge.Book, line.Charge.BookVersion)
		}
		key := Key{line.Charge.Tenant, line.Charge.Contract, version.Currency, line.Billing}
		if hashes[key] == nil {
			hashes[key] = new(rating.RowHash)
		}
		hashes[key].Add(line.Text)
	}
	proofs := make(map[Key]Proof, len(hashes))
	for key, hash := range hashes {
		proofs[key] = Proof{Rows: hash.Rows, RowsSHA256: hash.Sum()}
	}
	return proofs, nil
}
