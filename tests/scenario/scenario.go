// Package scenario runs the rules of money as scripts that a finance person can read: a catalog,
// what was used, and what it must come to. Each script runs on every engine. The language is
// described in README.md.
package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Script is one scenario.
type Script struct {
	Catalog string   // YAML
	Events  []string // CloudEvents in JSON, in their order
	Bill    []string // lines of the summary, sorted, without the header
	Refused []string // "ID: reason", in the order of the events
	// Documents are invoices and credit notes, a line each with what they have; nil: not compared.
	Documents []string
	Ticks     []Tick // of budgets, which the product alone knows
}

// Engine bills events by a catalog: it returns the lines of the summary, or the documents when all
// periods are closed, and the refusals.
type Engine interface {
	Bill(catalog string, events []string) (summary, refused []string, err error)
	Documents(catalog string, events []string) (documents, refused []string, err error)
}

// Parse reads a script. Errors name file and line.
func Parse(file, text string) (*Script, error) {
	s := new(Script)
	p := &parser{script: s}
	lines := bufio.NewScanner(strings.NewReader(text))
	for line := 1; lines.Scan(); line++ {
		if err := p.take(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	if p.block != "" {
		return nil, fmt.Errorf("%s: %s has no end", file, p.block)
	}
	if len(s.Ticks) == 0 &&
		(len(s.Events) == 0 || len(s.Bill)+len(s.Refused) == 0 && s.Documents == nil) {
		return nil, fmt.Errorf("%s: a scenario has usage, and a bill or refusals; or ticks", file)
	}
	slices.Sort(s.Bill)
	return s, nil
}

type parser struct {
	script *Script
	block  string // "catalog" or "bill" while one is open
}

func (p *parser) take(line string) error {
	if p.block == "catalog" {
		if strings.TrimSpace(line) == "end" {
			p.block = ""
			return nil
		}
		p.script.Catalog += line + "\n"
		return nil
	}
	text, _, _ := strings.Cut(line, "#")
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return nil
	case p.block != "" && words[0] == "end":
		p.block = ""
		return nil
	case p.block == "document":
		last := &p.script.Documents[len(p.script.Documents)-1]
		*last += strings.Join(words, " ") + "\n"
		return nil
	case words[0] == "invoice" && len(words) == 5 || words[0] == "credit-note" && len(words) == 6:
		p.block = "document"
		p.script.Documents = append(p.script.Documents, strings.Join(words, " ")+"\n")
		return nil
	case words[0] == "nothing" && len(words) == 2 && words[1] == "billed":
		p.script.Documents = []string{}
		return nil
	case p.block == "bill":
		return p.bill(words)
	case p.block == "tick":
		return p.tickLine(words)
	case words[0] == "tick":
		return p.tick(words)
	case words[0] == "catalog" || words[0] == "bill":
		p.block = words[0]
		return nil
	case words[0] == "refused" && len(words) == 3:
		p.script.Refused = append(p.script.Refused, words[1]+": "+words[2])
		return nil
	}
	return p.event(words)
}

// bill reads "TENANT PERIOD SKU PURCHASE BAND: QUANTITY UNIT = AMOUNT CURRENCY".
func (p *parser) bill(words []string) error {
	if len(words) != 10 || !strings.HasSuffix(words[4], ":") || words[7] != "=" {
		return errors.New("a line of a bill is " +
			"TENANT PERIOD SKU PURCHASE BAND: QUANTITY UNIT = AMOUNT CURRENCY")
	}
	unit := map[string]string{"seconds": "unit-second", "units": "unit"}[words[6]]
	if unit == "" {
		return fmt.Errorf("unit %q is neither seconds nor units", words[6])
	}
	quantity, err := decimals(words[5], 9)
	if err != nil {
		return err
	}
	amount, err := decimals(words[8], 12)
	if err != nil {
		return err
	}
	p.script.Bill = append(p.script.Bill, strings.Join([]string{
		words[0], words[1], words[2], words[3], strings.TrimSuffix(words[4], ":"), quantity, unit,
		amount, words[9],
	}, ","))
	return nil
}

// decimals writes a number with so many decimals.
func decimals(text string, places int) (string, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > places || whole == "" {
		return "", fmt.Errorf("%q is not a number of at most %d decimals", text, places)
	}
	return whole + "." + fraction + strings.Repeat("0", places-len(fraction)), nil
}
