package billing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/schemas"
)

// Record is a record of the billing log: one of its members is set, none if the record is about
// something else.
type Record struct {
	Decision *Decision
	Credit   *Drafted
	Release  *Act
	Void     *Act
	Alert    *alert.Alert
}

// Decision is what the documents of a closed billing period of a contract are. The first of a
// period counts.
type Decision struct {
	Tenant    string    `json:"tenant"`
	Contract  string    `json:"contract"`
	Period    string    `json:"period"`
	Documents []Drafted `json:"documents"`
	// Known is the end of the billing log that the sender had read; 0 is not said. What a person did
	// with a document of the tenant after it makes the decision count for nothing: the balances and
	// the invoices that it rests on are not what they were.
	Known int64 `json:"known,omitempty"`
}

// Drafted is a draft on its way to be issued.
type Drafted struct {
	Document `json:"document"`
	Terms    Terms    `json:"terms"`
	Held     []string `json:"held,omitempty"` // why a person must look at it first
	By       string   `json:"by,omitempty"`   // who made the credit note
	Reason   string   `json:"reason,omitempty"`
}

// Terms are what issuing needs of the seller.
type Terms struct {
	Series      string `json:"series"`
	Timezone    string `json:"timezone"` // of issue dates
	PaymentDays int    `json:"payment_days"`
}

func (t Terms) location() *time.Location {
	location, err := time.LoadLocation(t.Timezone)
	if err != nil {
		return time.UTC
	}
	return location
}

// Act is what a person does with a held draft.
type Act struct {
	ID     string `json:"id"` // of the document
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Of a draft that had no seller when it was made: as it is with the one that there is by now.
	Document *Document `json:"document,omitempty"`
	Terms    Terms     `json:"terms,omitzero"`
}

// envelope is a CloudEvent.
type envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
}

// Encode prints the record as a CloudEvent. The ID follows from what it is about, so a repeat has
// the same.
func (r *Record) Encode(source string) ([]byte, error) {
	e := envelope{SpecVersion: "1.0", Source: source}
	var data any
	switch {
	case r.Decision != nil:
		e.Type, data = schemas.TypeBillingPeriod, r.Decision
		key := Key{Tenant: r.Decision.Tenant, Contract: r.Decision.Contract, Period: r.Decision.Period}
		e.ID = "period," + key.String()
	case r.Credit != nil:
		e.Type, e.ID, data = schemas.TypeBillingCredit, "credit,"+r.Credit.ID(), r.Credit
	case r.Release != nil:
		e.Type, e.ID, data = schemas.TypeBillingRelease, "release,"+r.Release.ID, r.Release
	case r.Void != nil:
		e.Type, e.ID, data = schemas.TypeBillingVoid, "void,"+r.Void.ID, r.Void
	case r.Alert != nil:
		e.Type, e.ID, data = schemas.TypeBillingAlert, r.Alert.ID, r.Alert
	default:
		panic("BUG: an empty billing record")
	}
	var err error
	if e.Data, err = compact(data); err != nil {
		return nil, fmt.Errorf("encode billing record %s: %w", e.ID, err)
	}
	return compact(&e)
}

// compact is JSON without the escapes that HTML needs.
func compact(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// ParseRecord reads what [Record.Encode] printed. Records of other types are valid and empty.
func ParseRecord(value []byte) (*Record, error) {
	var e envelope
	if err := json.Unmarshal(value, &e); err != nil {
		return nil, fmt.Errorf("parse billing record: %w", err)
	}
	r := new(Record)
	var data any
	switch e.Type {
	case schemas.TypeBillingPeriod:
		r.Decision = new(Decision)
		data = r.Decision
	case schemas.TypeBillingCredit:
		r.Credit = new(Drafted)
		data = r.Credit
	case schemas.TypeBillingRelease:
		r.Release = new(Act)
		data = r.Release
	case schemas.TypeBillingVoid:
		r.Void = new(Act)
		data = r.Void
	case schemas.TypeBillingAlert:
		r.Alert = new(alert.Alert)
		data = r.Alert
	default:
		return r, nil
	}
	if err := json.Unmarshal(e.Data, data); err != nil {
		return nil, fmt.Errorf("parse billing record %s: %w", e.ID, err)
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("parse billing record %s: %w", e.ID, err)
	}
	return r, nil
}
