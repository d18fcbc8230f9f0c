package main

import (
	"errors"
	"testing"

	"github.com/suanpan/suanpan/pkg/catalog"
)

func TestParseKind_singularAndPlural(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, err := parseKind(text); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", text, got, err, want)
		}
	}
	f("all", "")
	f("pricebooks", "PriceBook")
	f("PriceBook", "PriceBook")
	f("taxrules", "TaxRule")
	f("policies", "Policy")
	f("budget", "Budget")
	for _, kind := range catalog.Kinds {
		f(kind, kind)
	}
	for _, text := range []string{"policys", "invoice", ""} {
		if got, err := parseKind(text); !errors.Is(err, errUsage) {
			t.Errorf("%s is %q, %v", text, got, err)
		}
	}
}
