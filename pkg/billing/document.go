// Package billing turns settled usage into documents: drafts of invoices and credit notes, what is
// held back, and the numbers that issuing gives. Sums, a catalog and what was billed before come
// in; documents go out. It does no I/O, reads no clock, starts no goroutine and uses no float.
package billing

import "strings"

// Schema names the form of a [Document], as schemas/invoice.v1.json has it.
const Schema = "suanpan.invoice.v1"

// Type tells invoices from credit notes.
type Type string

// The types of documents.
const (
	Invoice    Type = "invoice"
	CreditNote Type = "credit_note"
)

// LineKind says what a line of a document is about. The order of the constants is the order of the
// lines.
type LineKind string

// The kinds of lines.
const (
	UsageLine      LineKind = "usage"      // seconds and units of the period
	CommitmentLine LineKind = "commitment" // fee of reserved capacity
	AllowanceLine  LineKind = "allowance"  // fee or use of a grant of units
	MinimumLine    LineKind = "minimum"    // what is missing to the minimum spend
	CreditLine     LineKind = "credit"     // promotional money and service credits, negative
	LateLine       LineKind = "late"       // usage of an earlier period, after its close
)

// Document is an invoice or a credit note: one immutable JSON object, of which PDF, CSV, UBL and
// HTML are renderings. A draft has no number, issue date and due date. Amounts are decimal strings
// with the currency's digits, days are local YYYY-MM-DD. The amounts of a credit note are positive:
// what is given back.
type Document struct {
	Schema    string    `json:"schema"`
	Type      Type      `json:"type"`
	Number    string    `json:"number,omitempty"`
	IssueDate string    `json:"issue_date,omitempty"`
	DueDate   string    `json:"due_date,omitempty"` // of an issued invoice
	Cites     *Citation `json:"cites,omitempty"`    // of a credit note

	Tenant      string `json:"tenant"`
	Contract    string `json:"contract"`     // "" without one
	Period      string `json:"period"`       // billing period, YYYY-MM
	PeriodStart string `json:"period_start"` // its first day
	PeriodEnd   string `json:"period_end"`   // its last day
	Timezone    string `json:"timezone"`     // whose days these are, IANA
	Currency    string `json:"currency"`     // ISO 4217
	Language    string `json:"language"`     // of the renderings: en or zh

	Seller *Party `json:"seller,omitempty"` // absent where the catalog names none
	Buyer  *Party `json:"buyer,omitempty"`

	Lines    []Line `json:"lines"`
	Subtotal string `json:"subtotal"`  // sum of the lines' amounts
	Taxes    []Tax  `json:"taxes"`     // by category and rate
	TaxTotal string `json:"tax_total"` // sum of the taxes, those that the prices include too
	Total    string `json:"total"`     // Subtotal and the taxes that the prices do not include
	Prepaid  []Paid `json:"prepaid"`   // balances that paid a part of the total
	Due      string `json:"due"`       // Total less Prepaid

	// UnroundedTotal is the exact sum of the lines but for promotional money: that of the line
	// items, with 12 decimals.
	UnroundedTotal string   `json:"unrounded_total"`
	Notes          []string `json:"notes"`
	Proof          Proof    `json:"proof"`
}

// Citation names the invoice that a credit note lowers.
type Citation struct {
	Key       string `json:"key"`                  // of the invoice, see [Document.Key]
	Number    string `json:"number,omitempty"`     // absent in drafts
	IssueDate string `json:"issue_date,omitempty"` // absent in drafts
	Reason    string `json:"reason"`
	ID        string `json:"id"` // tells the credit notes of one invoice apart
}

// Party is the seller or the buyer, as of issue.
type Party struct {
	Name         string    `json:"name"` // in the catalog
	LegalName    string    `json:"legal_name,omitempty"`
	Address      *Address  `json:"address,omitempty"`
	TaxID        string    `json:"tax_id,omitempty"`
	Registration string    `json:"registration,omitempty"` // company number
	Endpoint     *Endpoint `json:"endpoint,omitempty"`
	Email        string    `json:"email,omitempty"`
	Phone        string    `json:"phone,omitempty"`
	Website      string    `json:"website,omitempty"`   // of a seller
	Bank         *Bank     `json:"bank,omitempty"`      // of a seller
	Logo         string    `json:"logo,omitempty"`      // of a seller: a PNG in base64
	Reference    string    `json:"reference,omitempty"` // of a buyer: what it wants to see
}

// Address is a postal address. Country is ISO 3166, two letters.
type Address struct {
	Street     string `json:"street,omitempty"`
	Line2      string `json:"line2,omitempty"`
	City       string `json:"city,omitempty"`
	Region     string `json:"region,omitempty"`
	PostalCode string `json:"postal_code,omitempty"`
	Country    string `json:"country,omitempty"`
}

// Endpoint is an electronic address, as Peppol has it.
type Endpoint struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// Bank is where an invoice is paid to.
type Bank struct {
	Name    string `json:"name,omitempty"`
	Account string `json:"account"` // IBAN where there is one
	BIC     string `json:"bic,omitempty"`
	Holder  string `json:"holder,omitempty"`
}

// Line is one line of a document. Usage lines are one for each SKU, purchase and band; a late line
// is one for each earlier period and tax treatment, with the lines that it is the sum of as
// details.
type Line struct {
	Kind     LineKind `json:"kind"`
	SKU      string   `json:"sku"`
	Purchase string   `json:"purchase"`
	Band     string   `json:"band"`

	UsagePeriod string `json:"usage_period"` // YYYY-MM
	Start       string `json:"start"`        // first day of its usage
	End         string `json:"end"`          // last day of its usage
	Description string `json:"description,omitempty"`

	Quantity  string `json:"quantity"`          // in Unit; a late line has 1
	Unit      string `json:"unit"`              // unit-second or unit
	UnitPrice string `json:"unit_price"`        // of one Per
	Per       string `json:"per"`               // second, hour, day, month or unit
	Average   bool   `json:"average,omitempty"` // the unit price follows from the amount
	Amount    string `json:"amount"`
	Net       string `json:"net"`          // Amount without the tax that it includes
	Exact     string `json:"exact_amount"` // unrounded, with 12 decimals

	Tax       *LineTax  `json:"tax,omitempty"` // absent where no tax rule is
	Tiers     []Tier    `json:"tiers,omitempty"`
	Package   string    `json:"package,omitempty"` // units that are sold together
	Grant     string    `json:"grant,omitempty"`   // of a credit line: the promotional grant
	Breakdown Breakdown `json:"breakdown"`
	Details   []Line    `json:"details,omitempty"` // of a late line, and of a credit note's
}

// LineTax is how a line is taxed.
type LineTax struct {
	Category  string `json:"category"` // of EN 16931: S, Z, E, AE, O, G, K, L or M
	Rate      string `json:"rate"`     // percent
	Inclusive bool   `json:"inclusive,omitempty"`
}

// Tier is the part of a line that lies in one tier of a ladder. Over several ladders, such as one
// for every hour, it is their sum.
type Tier struct {
	UpTo      string `json:"up_to,omitempty"` // in units of the price; absent in the last tier
	Quantity  string `json:"quantity"`        // in the line's unit
	UnitPrice string `json:"unit_price"`
	Exact     string `json:"exact_amount"`
}

// Breakdown is a line by project and by the labels that we know. Each list that is there adds up to
// the line. A name "" is usage without that label.
type Breakdown struct {
	Projects      []Share `json:"projects,omitempty"`
	Teams         []Share `json:"teams,omitempty"`
	Models        []Share `json:"models,omitempty"`
	ModelVersions []Share `json:"model_versions,omitempty"`
	Stages        []Share `json:"stages,omitempty"`
}

// Share is the part of a line that one name has.
type Share struct {
	Name     string `json:"name"`
	Quantity string `json:"quantity"`
	Amount   string `json:"amount"`
	Others   int    `json:"others,omitempty"` // names that were put together here
}

// Tax is the tax of all lines of one category and rate.
type Tax struct {
	LineTax
	Taxable    string `json:"taxable"` // without the tax
	Tax        string `json:"tax"`
	Reason     string `json:"reason,omitempty"` // why there is none
	ReasonCode string `json:"reason_code,omitempty"`
}

// Paid is what one paid grant contributed.
type Paid struct {
	Grant  string `json:"grant"`
	Amount string `json:"amount"`
}

// Proof is by what a document can be checked.
type Proof struct {
	Rows          int64  `json:"rows"`
	RowsSHA256    string `json:"rows_sha256"` // of its rows, see [Hash]
	TimeZoneData  string `json:"tzdata,omitempty"`
	Partition     int    `json:"partition,omitempty"` // of the close in the usage topic
	CloseOffset   int64  `json:"close_offset,omitempty"`
	CatalogOffset int64  `json:"catalog_offset,omitempty"` // end of the topic that was read
	MarketOffset  int64  `json:"market_offset,omitempty"`
}

// Key names what a document is for: one invoice for each tenant, contract, currency and period.
type Key struct {
	Tenant   string
	Contract string
	Currency string
	Period   string
}

// String prints the key with commas, which no name has: "acme,,CNY,2026-01".
func (k Key) String() string {
	return strings.Join([]string{k.Tenant, k.Contract, k.Currency, k.Period}, ",")
}

// Key returns what the document is for. A credit note has the key of the invoice that it cites, or
// would be on.
func (d *Document) Key() Key { return Key{d.Tenant, d.Contract, d.Currency, d.Period} }

// ID names the document: the key of the invoice, and for a credit note its own id too.
func (d *Document) ID() string {
	if d.Type == CreditNote {
		return d.Key().String() + "," + d.Cites.ID
	}
	return d.Key().String()
}

// Status is the state of a document that was decided on.
type Status string

// The states of documents. A held draft is issued or voided by a person; an issued document never
// changes.
const (
	Held   Status = "held"
	Issued Status = "issued"
	Voided Status = "voided"
)
