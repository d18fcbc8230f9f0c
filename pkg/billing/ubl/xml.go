package ubl

import "encoding/xml"

// The elements of UBL 2.1 that we use, in the order that its schemas want. Nil and empty ones are
// left out: Peppol allows no empty element.

type document struct {
	XMLName         xml.Name
	XMLNS           string `xml:"xmlns,attr"`
	CAC             string `xml:"xmlns:cac,attr"`
	CBC             string `xml:"xmlns:cbc,attr"`
	CustomizationID string `xml:"cbc:CustomizationID"`
	ProfileID       string `xml:"cbc:ProfileID"`
	ID              string `xml:"cbc:ID"`
	IssueDate       string `xml:"cbc:IssueDate"`
	DueDate         string `xml:"cbc:DueDate,omitempty"`
	InvoiceType     string `xml:"cbc:InvoiceTypeCode,omitempty"`
	CreditNoteType  string `xml:"cbc:CreditNoteTypeCode,omitempty"`
	Note            string `xml:"cbc:Note,omitempty"`
	Currency        string `xml:"cbc:DocumentCurrencyCode"`
	BuyerReference  string `xml:"cbc:BuyerReference"`
	Period          period `xml:"cac:InvoicePeriod"`

	BillingReference *billingReference `xml:"cac:BillingReference"`
	Contract         *reference        `xml:"cac:ContractDocumentReference"`
	Supplier         party             `xml:"cac:AccountingSupplierParty>cac:Party"`
	Customer         party             `xml:"cac:AccountingCustomerParty>cac:Party"`
	Delivery         *delivery         `xml:"cac:Delivery"`
	PaymentMeans     *paymentMeans     `xml:"cac:PaymentMeans"`
	PaymentTerms     *paymentTerms     `xml:"cac:PaymentTerms"`
	TaxTotal         taxTotal          `xml:"cac:TaxTotal"`
	Total            monetaryTotal     `xml:"cac:LegalMonetaryTotal"`
	InvoiceLines     []line            `xml:"cac:InvoiceLine"`
	CreditNoteLines  []line            `xml:"cac:CreditNoteLine"`
}

type period struct {
	Start string `xml:"cbc:StartDate"`
	End   string `xml:"cbc:EndDate"`
}

type billingReference struct {
	ID        string `xml:"cac:InvoiceDocumentReference>cbc:ID"`
	IssueDate string `xml:"cac:InvoiceDocumentReference>cbc:IssueDate,omitempty"`
}

type reference struct {
	ID string `xml:"cbc:ID"`
}

type identifier struct {
	Scheme string `xml:"schemeID,attr,omitempty"`
	Value  string `xml:",chardata"`
}

type party struct {
	Endpoint identifier  `xml:"cbc:EndpointID"`
	Name     string      `xml:"cac:PartyName>cbc:Name"`
	Address  address     `xml:"cac:PostalAddress"`
	Tax      *taxScheme  `xml:"cac:PartyTaxScheme"`
	Legal    legalEntity `xml:"cac:PartyLegalEntity"`
	Contact  *contact    `xml:"cac:Contact"`
}

type address struct {
	Street  string `xml:"cbc:StreetName,omitempty"`
	Line2   string `xml:"cbc:AdditionalStreetName,omitempty"`
	City    string `xml:"cbc:CityName,omitempty"`
	Postal  string `xml:"cbc:PostalZone,omitempty"`
	Region  string `xml:"cbc:CountrySubentity,omitempty"`
	Country string `xml:"cac:Country>cbc:IdentificationCode"`
}

type taxScheme struct {
	CompanyID string `xml:"cbc:CompanyID"`
	Scheme    string `xml:"cac:TaxScheme>cbc:ID"`
}

type legalEntity struct {
	Name      string      `xml:"cbc:RegistrationName"`
	CompanyID *identifier `xml:"cbc:CompanyID"`
}

type contact struct {
	Name      string `xml:"cbc:Name"`
	Telephone string `xml:"cbc:Telephone,omitempty"`
	Mail      string `xml:"cbc:ElectronicMail,omitempty"`
}

type delivery struct {
	Date    string  `xml:"cbc:ActualDeliveryDate"`
	Address address `xml:"cac:DeliveryLocation>cac:Address"`
}

type paymentMeans struct {
	Code    string   `xml:"cbc:PaymentMeansCode"`
	ID      string   `xml:"cbc:PaymentID"`
	Account *account `xml:"cac:PayeeFinancialAccount"`
}

type account struct {
	ID     string     `xml:"cbc:ID"`
	Name   string     `xml:"cbc:Name,omitempty"`
	Branch *reference `xml:"cac:FinancialInstitutionBranch"`
}

type paymentTerms struct {
	Note string `xml:"cbc:Note"`
}

type amount struct {
	Currency string `xml:"currencyID,attr"`
	Value    string `xml:",chardata"`
}

type quantity struct {
	Unit  string `xml:"unitCode,attr"`
	Value string `xml:",chardata"`
}

type taxTotal struct {
	Amount    amount        `xml:"cbc:TaxAmount"`
	Subtotals []taxSubtotal `xml:"cac:TaxSubtotal"`
}

type taxSubtotal struct {
	Taxable  amount   `xml:"cbc:TaxableAmount"`
	Tax      amount   `xml:"cbc:TaxAmount"`
	Category category `xml:"cac:TaxCategory"`
}

type category struct {
	ID         string `xml:"cbc:ID"`
	Percent    string `xml:"cbc:Percent,omitempty"`
	ReasonCode string `xml:"cbc:TaxExemptionReasonCode,omitempty"`
	Reason     string `xml:"cbc:TaxExemptionReason,omitempty"`
	Scheme     string `xml:"cac:TaxScheme>cbc:ID"`
}

type monetaryTotal struct {
	Lines        amount  `xml:"cbc:LineExtensionAmount"`
	TaxExclusive amount  `xml:"cbc:TaxExclusiveAmount"`
	TaxInclusive amount  `xml:"cbc:TaxInclusiveAmount"`
	Prepaid      *amount `xml:"cbc:PrepaidAmount"`
	Rounding     *amount `xml:"cbc:PayableRoundingAmount"`
	Payable      amount  `xml:"cbc:PayableAmount"`
}

type line struct {
	ID       string    `xml:"cbc:ID"`
	Note     string    `xml:"cbc:Note,omitempty"`
	Invoiced *quantity `xml:"cbc:InvoicedQuantity"`
	Credited *quantity `xml:"cbc:CreditedQuantity"`
	Amount   amount    `xml:"cbc:LineExtensionAmount"`
	Period   period    `xml:"cac:InvoicePeriod"`
	Item     item      `xml:"cac:Item"`
	Price    price     `xml:"cac:Price"`
}

type item struct {
	Description string     `xml:"cbc:Description,omitempty"`
	Name        string     `xml:"cbc:Name"`
	SKU         *reference `xml:"cac:SellersItemIdentification"`
	Category    category   `xml:"cac:ClassifiedTaxCategory"`
}

type price struct {
	Amount amount    `xml:"cbc:PriceAmount"`
	Base   *quantity `xml:"cbc:BaseQuantity"`
}
