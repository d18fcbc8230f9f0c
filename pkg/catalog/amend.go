package catalog

// lateKey names a version of a price book that nobody rates by but re-ratings.
type lateKey struct {
	book string
	from int64
}

// Amended returns an empty catalog for a re-rating, that shares the market prices. Entries that are
// added to it with Replay set hold from where they say, the past included.
func (c *Catalog) Amended() *Catalog {
	amended := Empty()
	amended.market = c.market
	return amended
}

// remember keeps a price book version that starts too early to be rated by: charges of re-ratings
// may be of it.
func (c *Catalog) remember(d Document) {
	if v, ok := d.body.(*Version); ok {
		key := lateKey{d.Name, d.From}
		if c.late[key] == nil { // the first in the log counts
			c.late[key] = v
		}
	}
}
