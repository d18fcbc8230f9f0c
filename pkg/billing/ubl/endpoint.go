package ubl

import (
	"regexp"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing"
)

// schemes are those that Peppol knows electronic addresses by (PEPPOL-EN16931-CL008, 2026.5).
const schemes = " 0002 0007 0009 0060 0088 0096 0097 0106 0130 0135 0142 0151 0183 0184 0188 0190" +
	" 0191 0192 0195 0196 0198 0199 0200 0201 0204 0208 0209 0210 0211 0216 0218 0221 0225 0230" +
	" 0235 0240 0242 0244 0245 0246 0248 9910 9913 9914 9915 9918 9919 9920 9922 9923 9924 9925" +
	" 9926 9927 9928 9929 9930 9931 9932 9933 9934 9935 9936 9937 9938 9939 9940 9941 9942 9943" +
	" 9944 9945 9946 9947 9948 9949 9950 9951 9952 9953 9957 9959 "

// vatSchemes are the schemes of which the addresses are the VAT numbers of a country.
var vatSchemes = map[string]string{
	"AD": "9922", "AL": "9923", "AT": "9914", "BA": "9924", "BE": "9925", "BG": "9926", "CH": "9927",
	"CY": "9928", "CZ": "9929", "DE": "9930", "EE": "9931", "ES": "9920", "FR": "9957", "GB": "9932",
	"HR": "9934", "HU": "9910", "IE": "9935", "IT": "0211", "LI": "9936", "LT": "9937", "LU": "9938",
	"LV": "9939", "MC": "9940", "ME": "9941", "MK": "9942", "MT": "9943", "NL": "9944", "PL": "9945",
	"PT": "9946", "RO": "9947", "RS": "9948", "SI": "9949", "SK": "9950", "SM": "9951", "TR": "9952",
}

// endpointOf returns where a party receives e-invoices: the address that the catalog gives or,
// where VAT numbers are such addresses, its VAT number. Peppol takes no e-mail addresses.
func endpointOf(p *billing.Party) (billing.Endpoint, bool) {
	if p.Endpoint != nil {
		return *p.Endpoint, true
	}
	if p.TaxID == "" || p.Address == nil {
		return billing.Endpoint{}, false
	}
	id := vatID(p)
	scheme, ok := vatSchemes[id[:2]]
	return billing.Endpoint{Scheme: scheme, ID: id}, ok
}

// form is what the addresses of a scheme look like.
type form struct {
	pattern *regexp.Regexp
	valid   func(digits string) bool // its check digits, nil: none
}

var forms = map[string]form{
	"0007": {regexp.MustCompile(`^[0-9]{10}$`), swedish},
	"0088": {regexp.MustCompile(`^[0-9]{2,}$`), gln},
	"0096": {regexp.MustCompile(`^[0-9]{10}$`), nil},
	"0151": {regexp.MustCompile(`^[0-9]{11}$`), australian},
	"0184": {regexp.MustCompile(`^(?:DK)?[0-9]{8}$`), nil},
	"0192": {regexp.MustCompile(`^[0-9]{9}$`), norwegian},
	"0198": {regexp.MustCompile(`^DK[0-9]{8}$`), nil},
	"0208": {regexp.MustCompile(`^[0-9]{10}$`), belgian},
}

// wellFormed reports whether an identifier is one of the scheme, as far as the rules check it.
func wellFormed(scheme, id string) bool {
	f, ok := forms[scheme]
	return !ok || f.pattern.MatchString(id) && (f.valid == nil || f.valid(id))
}

// known reports whether a code is in a list, which has spaces around each.
func known(list, code string) bool { return strings.Contains(list, " "+code+" ") }

// number reads digits, which are few.
func number(digits string) (n int) {
	for i := range len(digits) {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}

// weighted adds up all digits but the last, each times its weight; 0 is the position at the right.
func weighted(digits string, weight func(position int) int) (sum, last int) {
	end := len(digits) - 1
	for i := range end {
		sum += int(digits[end-1-i]-'0') * weight(i)
	}
	return sum, int(digits[end] - '0')
}

func gln(digits string) bool {
	sum, last := weighted(digits, func(position int) int { return 3 - 2*(position%2) })
	return (10-sum%10)%10 == last
}

func norwegian(digits string) bool {
	sum, last := weighted(digits, func(position int) int { return position%6 + 2 })
	return sum > 0 && (11-sum%11)%11 == last
}

// swedish is the Luhn algorithm: the digits of doubled digits are added.
func swedish(digits string) bool {
	sum := 0
	for i := range 9 {
		n := int(digits[8-i]-'0') * (2 - i%2)
		sum += n/10 + n%10
	}
	return (10-sum%10)%10 == int(digits[9]-'0')
}

func belgian(digits string) bool { return 97-number(digits[:8])%97 == number(digits[8:]) }

func australian(digits string) bool {
	sum := (int(digits[0]-'0') - 1) * 10
	for i := 1; i < len(digits); i++ {
		sum += int(digits[i]-'0') * (2*i - 1)
	}
	return sum%89 == 0
}
