package focus

import "github.com/suanpan/suanpan/pkg/money"

// kind is how the values of a column are written.
type kind uint8

// The kinds of columns.
const (
	text    kind = iota
	decimal      // 128 bits in Parquet, with the column's scale
	instant      // UTC, microseconds in Parquet
)

// column is one column of a dataset.
type column struct {
	name  string
	kind  kind
	scale int     // decimals, of a decimal
	only  Version // that has it; "" for all
}

// The columns of Cost and Usage, alphabetically, as Parquet orders them too. Ours begin with x_;
// those that begin with local are in the pricing currency.
const (
	availabilityZone = iota
	billedCost
	billingAccountID
	billingAccountName
	billingAccountType
	billingCurrency
	billingPeriodEnd
	billingPeriodStart
	capacityReservationID
	capacityReservationStatus
	chargeCategory
	chargeClass
	chargeDescription
	chargeFrequency
	chargePeriodEnd
	chargePeriodStart
	commitmentDiscountCategory
	commitmentDiscountID
	commitmentDiscountName
	commitmentDiscountQuantity
	commitmentDiscountStatus
	commitmentDiscountType
	commitmentDiscountUnit
	consumedQuantity
	consumedUnit
	contractedCost
	contractedUnitPrice
	effectiveCost
	hostProviderName
	invoiceDetailID
	invoiceID
	invoiceIssuerName
	listCost
	listUnitPrice
	pricingCategory
	pricingCurrency
	localContractedUnitPrice
	localEffectiveCost
	localListUnitPrice
	pricingQuantity
	pricingUnit
	providerName
	publisherName
	regionID
	regionName
	resourceID
	resourceName
	resourceType
	serviceCategory
	serviceName
	serviceProviderName
	serviceSubcategory
	skuID
	skuMeter
	skuPriceDetails
	skuPriceID
	subAccountID
	subAccountName
	subAccountType
	tags
	ownBand
	ownBillingPeriod
	ownContract
	ownDay
	ownDocumentID
	ownDocumentType
	ownGrant
	ownKind
	ownLease
	ownNode
	ownPurchase
	ownReason
	ownTaxCategory
	ownTaxRate
	ownTenant
	ownUsagePeriod
	columnCount
)

// row is the cells of one row of Cost and Usage, "" for null.
type row [columnCount]string

// Costs that are a product of price and quantity have the decimals of both, so that the product is
// exact.
const (
	priceScale    = 12
	quantityScale = 12
	productScale  = priceScale + quantityScale
)

// columns describes the columns of Cost and Usage.
var columns = [columnCount]column{
	availabilityZone:           {"AvailabilityZone", text, 0, ""},
	billedCost:                 {"BilledCost", decimal, money.Scale, ""},
	billingAccountID:           {"BillingAccountId", text, 0, ""},
	billingAccountName:         {"BillingAccountName", text, 0, ""},
	billingAccountType:         {"BillingAccountType", text, 0, ""},
	billingCurrency:            {"BillingCurrency", text, 0, ""},
	billingPeriodEnd:           {"BillingPeriodEnd", instant, 0, ""},
	billingPeriodStart:         {"BillingPeriodStart", instant, 0, ""},
	capacityReservationID:      {"CapacityReservationId", text, 0, ""},
	capacityReservationStatus:  {"CapacityReservationStatus", text, 0, ""},
	chargeCategory:             {"ChargeCategory", text, 0, ""},
	chargeClass:                {"ChargeClass", text, 0, ""},
	chargeDescription:          {"ChargeDescription", text, 0, ""},
	chargeFrequency:            {"ChargeFrequency", text, 0, ""},
	chargePeriodEnd:            {"ChargePeriodEnd", instant, 0, ""},
	chargePeriodStart:          {"ChargePeriodStart", instant, 0, ""},
	commitmentDiscountCategory: {"CommitmentDiscountCategory", text, 0, ""},
	commitmentDiscountID:       {"CommitmentDiscountId", text, 0, ""},
	commitmentDiscountName:     {"CommitmentDiscountName", text, 0, ""},
	commitmentDiscountQuantity: {"CommitmentDiscountQuantity", decimal, quantityScale, ""},
	commitmentDiscountStatus:   {"CommitmentDiscountStatus", text, 0, ""},
	commitmentDiscountType:     {"CommitmentDiscountType", text, 0, ""},
	commitmentDiscountUnit:     {"CommitmentDiscountUnit", text, 0, ""},
	consumedQuantity:           {"ConsumedQuantity", decimal, quantityScale, ""},
	consumedUnit:               {"ConsumedUnit", text, 0, ""},
	contractedCost:             {"ContractedCost", decimal, productScale, ""},
	contractedUnitPrice:        {"ContractedUnitPrice", decimal, priceScale, ""},
	effectiveCost:              {"EffectiveCost", decimal, money.Scale, ""},
	hostProviderName:           {"HostProviderName", text, 0, V14},
	invoiceDetailID:            {"InvoiceDetailId", text, 0, V14},
	invoiceID:                  {"InvoiceId", text, 0, ""},
	invoiceIssuerName:          {"InvoiceIssuerName", text, 0, ""},
	listCost:                   {"ListCost", decimal, productScale, ""},
	listUnitPrice:              {"ListUnitPrice", decimal, priceScale, ""},
	pricingCategory:            {"PricingCategory", text, 0, ""},
	pricingCurrency:            {"PricingCurrency", text, 0, ""},
	localContractedUnitPrice:   {"PricingCurrencyContractedUnitPrice", decimal, priceScale, ""},
	localEffectiveCost:         {"PricingCurrencyEffectiveCost", decimal, money.Scale, ""},
	localListUnitPrice:         {"PricingCurrencyListUnitPrice", decimal, priceScale, ""},
	pricingQuantity:            {"PricingQuantity", decimal, quantityScale, ""},
	pricingUnit:                {"PricingUnit", text, 0, ""},
	providerName:               {"ProviderName", text, 0, V12},
	publisherName:              {"PublisherName", text, 0, V12},
	regionID:                   {"RegionId", text, 0, ""},
	regionName:                 {"RegionName", text, 0, ""},
	resourceID:                 {"ResourceId", text, 0, ""},
	resourceName:               {"ResourceName", text, 0, ""},
	resourceType:               {"ResourceType", text, 0, ""},
	serviceCategory:            {"ServiceCategory", text, 0, ""},
	serviceName:                {"ServiceName", text, 0, ""},
	serviceProviderName:        {"ServiceProviderName", text, 0, V14},
	serviceSubcategory:         {"ServiceSubcategory", text, 0, ""},
	skuID:                      {"SkuId", text, 0, ""},
	skuMeter:                   {"SkuMeter", text, 0, ""},
	skuPriceDetails:            {"SkuPriceDetails", text, 0, ""},
	skuPriceID:                 {"SkuPriceId", text, 0, ""},
	subAccountID:               {"SubAccountId", text, 0, ""},
	subAccountName:             {"SubAccountName", text, 0, ""},
	subAccountType:             {"SubAccountType", text, 0, ""},
	tags:                       {"Tags", text, 0, ""},
	ownBand:                    {"x_Band", text, 0, ""},
	ownBillingPeriod:           {"x_BillingPeriod", text, 0, ""},
	ownContract:                {"x_Contract", text, 0, ""},
	ownDay:                     {"x_Day", text, 0, ""},
	ownDocumentID:              {"x_DocumentId", text, 0, ""},
	ownDocumentType:            {"x_DocumentType", text, 0, ""},
	ownGrant:                   {"x_Grant", text, 0, ""},
	ownKind:                    {"x_Kind", text, 0, ""},
	ownLease:                   {"x_Lease", text, 0, ""},
	ownNode:                    {"x_Node", text, 0, ""},
	ownPurchase:                {"x_Purchase", text, 0, ""},
	ownReason:                  {"x_Reason", text, 0, ""},
	ownTaxCategory:             {"x_TaxCategory", text, 0, ""},
	ownTaxRate:                 {"x_TaxRate", text, 0, ""},
	ownTenant:                  {"x_Tenant", text, 0, ""},
	ownUsagePeriod:             {"x_UsagePeriod", text, 0, ""},
}
