package catalog

import "github.com/suanpan/suanpan/pkg/money"

// PolicyType says what a policy watches.
type PolicyType string

// The types of policies.
const (
	IdleGPU          PolicyType = "idle_gpu"          // a GPU that is used little for minutes
	Unreleased       PolicyType = "unreleased"        // a lease that does nothing
	LowUtilisation   PolicyType = "low_utilisation"   // a card that is used little for days
	FleetUtilisation PolicyType = "fleet_utilisation" // all cards together
	SpendAnomaly     PolicyType = "spend_anomaly"     // spend per hour out of its usual range
	ExporterSilent   PolicyType = "exporter_silent"   // a running session without usage events
	ContractEnd      PolicyType = "contract_end"      // a contract that ends soon
	AllowanceUsed    PolicyType = "allowance"         // an allowance or a pack that is used up
	PriceChange      PolicyType = "price_change"      // a market price that moves
	PriceLow         PolicyType = "price_low"         // a market price worth locking
	DeadLetters      PolicyType = "dead_letters"      // events that could not be rated
	HeldInvoices     PolicyType = "held_invoices"     // invoices that wait for a person
)

// Threshold is a number that a type of policies may set.
type Threshold struct {
	Name        string
	Default     money.Amount
	Least, Most money.Amount
	Whole       bool // it has no decimals
}

// Thresholds returns the thresholds of a type, nil where there is no such type.
func Thresholds(of PolicyType) []Threshold { return policyThresholds[of] }

// policyThresholds are the thresholds of each type. Utilisation is in percent, quantiles and
// fractions are of 1.
var policyThresholds = map[PolicyType][]Threshold{
	IdleGPU:          {percent("50"), whole("minutes", "10", "1440")},
	Unreleased:       {percent("2"), whole("minutes", "30", "1440")},
	LowUtilisation:   {percent("70"), whole("days", "7", "90")},
	FleetUtilisation: {percent("85"), whole("hours", "24", "744")},
	SpendAnomaly:     {decimal("deviations", "4", "1", "100"), whole("days", "28", "90")},
	ExporterSilent:   {whole("minutes", "5", "1440")},
	ContractEnd: {
		whole("first_days", "30", "366"), whole("second_days", "7", "366"),
		whole("last_days", "1", "366"),
	},
	AllowanceUsed: {
		decimal("first_fraction", "0.8", "0.01", "1"), decimal("last_fraction", "1", "0.01", "1"),
	},
	PriceChange:  {decimal("fraction", "0.1", "0.001", "100")},
	PriceLow:     {decimal("quantile", "0.1", "0.001", "0.999"), whole("days", "90", "366")},
	DeadLetters:  {whole("count", "1", "1000000")},
	HeldInvoices: {whole("count", "1", "1000000")},
}

// policyScopes says by what each type's policies may be limited.
var policyScopes = map[PolicyType][]string{
	IdleGPU:          {"tenants", "projects", "skus"},
	Unreleased:       {"tenants", "projects", "skus"},
	LowUtilisation:   {"skus"}, // cards belong to the platform
	FleetUtilisation: {"tenants", "projects", "skus"},
	SpendAnomaly:     {"tenants"},
	ExporterSilent:   {"tenants", "projects"},
	ContractEnd:      {"tenants"},
	AllowanceUsed:    {"tenants", "skus"},
	PriceChange:      {"tenants", "skus"},
	PriceLow:         {"tenants", "skus"},
	DeadLetters:      {"tenants"},
	HeldInvoices:     {"tenants"},
}

// policyNames are the types in the order in which messages list them.
func policyNames() []string {
	return []string{
		string(IdleGPU), string(Unreleased), string(LowUtilisation), string(FleetUtilisation),
		string(SpendAnomaly), string(ExporterSilent), string(ContractEnd), string(AllowanceUsed),
		string(PriceChange), string(PriceLow), string(DeadLetters), string(HeldInvoices),
	}
}

func decimal(name, standard, least, most string) Threshold {
	return Threshold{
		Name: name, Default: money.MustParse(standard), Least: money.MustParse(least),
		Most: money.MustParse(most),
	}
}

func percent(standard string) Threshold { return decimal("utilisation", standard, "0.1", "100") }

func whole(name, standard, most string) Threshold {
	t := decimal(name, standard, "1", most)
	t.Whole = true
	return t
}
