package focus

// kind is how a column is written.
type kind uint8

const (
	text kind = iota
	decimal
	instant
)

// Versions of FOCUS.
const (
	V12 = "1.2"
	V14 = "1.4"
)

// column is a column of the dataset Cost and Usage.
type column struct {
	name string
	kind kind
	only string // the version that has it; "" is all
}

// columns are in the order of their names, as the columns of a Parquet file are.
var columns = []column{
	{"AvailabilityZone", text, ""},
	{"BilledCost", decimal, ""},
	{"BillingAccountId", text, ""},
	{"BillingAccountName", text, ""},
	{"BillingAccountType", text, ""},
	{"BillingCurrency", text, ""},
	{"BillingPeriodEnd", instant, ""},
	{"BillingPeriodStart", instant, ""},
	{"CapacityReservationId", text, ""},
	{"CapacityReservationStatus", text, ""},
	{"ChargeCategory", text, ""},
	{"ChargeClass", text, ""},
	{"ChargeDescription", text, ""},
	{"ChargeFrequency", text, ""},
	{"ChargePeriodEnd", instant, ""},
	{"ChargePeriodStart", instant, ""},
	{"CommitmentDiscountCategory", text, ""},
	{"CommitmentDiscountId", text, ""},
	{"CommitmentDiscountName", text, ""},
	{"CommitmentDiscountQuantity", decimal, ""},
	{"CommitmentDiscountStatus", text, ""},
	{"CommitmentDiscountType", text, ""},
	{"CommitmentDiscountUnit", text, ""},
	{"ConsumedQuantity", decimal, ""},
	{"ConsumedUnit", text, ""},
	{"ContractedCost", decimal, ""},
	{"ContractedUnitPrice", decimal, ""},
	{"EffectiveCost", decimal, ""},
	{"HostProviderName", text, V14},
	{"InvoiceDetailId", text, V14},
	{"InvoiceId", text, ""},
	{"InvoiceIssuerName", text, ""},
	{"ListCost", decimal, ""},
	{"ListUnitPrice", decimal, ""},
	{"PricingCategory", text, ""},
	{"PricingCurrency", text, ""},
	{"PricingCurrencyContractedUnitPrice", decimal, ""},
	{"PricingCurrencyEffectiveCost", decimal, ""},
	{"PricingCurrencyListUnitPrice", decimal, ""},
	{"PricingQuantity", decimal, ""},
	{"PricingUnit", text, ""},
	{"ProviderName", text, V12},
	{"PublisherName", text, V12},
	{"RegionId", text, ""},
	{"RegionName", text, ""},
	{"ResourceId", text, ""},
	{"ResourceName", text, ""},
	{"ResourceType", text, ""},
	{"ServiceCategory", text, ""},
	{"ServiceName", text, ""},
	{"ServiceProviderName", text, V14},
	{"ServiceSubcategory", text, ""},
	{"SkuId", text, ""},
	{"SkuMeter", text, ""},
	{"SkuPriceDetails", text, ""},
	{"SkuPriceId", text, ""},
	{"SubAccountId", text, ""},
	{"SubAccountName", text, ""},
	{"SubAccountType", text, ""},
	{"Tags", text, ""},
	{"x_Band", text, ""},
	{"x_Contract", text, ""},
	{"x_Kind", text, ""},
	{"x_Lease", text, ""},
	{"x_Node", text, ""},
	{"x_Purchase", text, ""},
	{"x_UsagePeriod", text, ""},
}

// columnsOf are the columns of a version.
func columnsOf(version string) []column {
	var out []column
	for _, c := range columns {
		if c.only == "" || c.only == version {
			out = append(out, c)
		}
	}
	return out
}

// service is what FOCUS calls a SKU by.
type service struct{ prefix, category, subcategory, name string }

// services are found by how a SKU begins; the last one is for all others.
var services = []service{
	{"gpu.", "Compute", "Virtual Machines", "GPU Rental"},
	{"npu.", "Compute", "Virtual Machines", "NPU Rental"},
	{"cpu.", "Compute", "Virtual Machines", "CPU Rental"},
	{"memory.", "Compute", "Virtual Machines", "Memory Rental"},
	{"storage.", "Storage", "Other (Storage)", "Storage"},
	{"network.", "Networking", "Other (Networking)", "Network"},
	{"interconnect.", "Networking", "Other (Networking)", "Interconnect"},
	{"task.", "AI and Machine Learning", "Other (AI and Machine Learning)", "Training Tasks"},
	{"tokens.", "AI and Machine Learning", "Other (AI and Machine Learning)", "Training"},
	{"", "Compute", "Other (Compute)", "GPU Cloud"},
}
