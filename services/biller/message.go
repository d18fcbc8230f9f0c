package biller

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/metering"
	"github.com/suanpan/suanpan/pkg/money"
	"github.com/suanpan/suanpan/pkg/notify"
)

// budgetType is the type of messages about budgets; those about policies have policyType and the
// policy's type.
const (
	budgetType = "budget.threshold_reached"
	policyType = "policy."
)

// MessageOf puts an alert into words: in Chinese for a language of it, else in English.
func MessageOf(a *alert.Alert, language string) (notify.Message, error) {
	w := wording{a, languageOf(language)}
	at, err := metering.ParseInstant(a.At)
	if err != nil {
		return notify.Message{}, fmt.Errorf("alert %s: %w", a.ID, err)
	}
	shown := *a
	shown.To = []alert.Contact{} // where else it goes is nobody's business
	data, err := json.Marshal(&shown)
	if err != nil {
		return notify.Message{}, fmt.Errorf("alert %s: %w", a.ID, err)
	}
	p := w.phrase()
	m := notify.Message{
		ID: notify.MessageID(a.ID), Alert: a.Key, Type: policyType + string(a.Kind), Time: at.Time(),
		Tenant: a.Tenant, Language: language, Severity: p.severity, Status: notify.Firing,
		Title: w.fill(p.title), Summary: w.fill(p.summary), Labels: w.labels(),
		Query: a.Query, Data: data,
	}
	if a.Kind == alert.Budget {
		m.Type = budgetType
		if threshold, err := money.ParseSigned(a.Threshold); err == nil && threshold.Cmp(one) >= 0 {
			m.Severity = notify.Critical
		}
	}
	for _, f := range w.figures() {
		m.Evidence = append(m.Evidence, notify.Figure{Name: w.named(f.Name), Value: w.value(f)})
	}
	if a.Status == alert.Resolved {
		since, err := metering.ParseInstant(a.Since)
		if err != nil {
			return notify.Message{}, fmt.Errorf("alert %s: %w", a.ID, err)
		}
		m.Status, m.Since = notify.Resolved, since.Time()
		m.Title = isOver[w.language] + m.Title
		m.Summary = fmt.Sprintf(overBecause[a.Why][w.language], moment(a.Since), moment(a.At))
	} else if hint := w.hint(); hint != "" {
		m.Summary += "\n" + hint
	}
	return m.Fit(), nil
}

var one = money.MustParse("1")

// wording puts one alert into the words of one language.
type wording struct {
	*alert.Alert
	language int
}

func (w wording) phrase() phrase {
	switch {
	case w.Kind == alert.Budget:
		return budgetPhrase
	case w.Kind == alert.Kind(catalog.ExporterSilent) && w.Tenant == "":
		return allSilent
	}
	return phrases[w.Kind]
}

// labels tell alerts of one type apart.
func (w wording) labels() map[string]string {
	if w.Kind == alert.Budget {
		return map[string]string{"budget": w.Name, "period": w.Period, "threshold": w.Threshold}
	}
	labels := map[string]string{"policy": w.Name}
	for name, value := range w.Labels {
		labels[name] = value
	}
	return labels
}

func (w wording) figures() []alert.Figure {
	if w.Kind != alert.Budget {
		return w.Figures
	}
	return []alert.Figure{
		{Name: "spend", Value: short(w.Spend), Unit: w.Currency},
		{Name: "budget", Value: short(w.Amount), Unit: w.Currency},
		{Name: "forecast", Value: short(w.Forecast), Unit: w.Currency},
		{Name: "threshold", Value: percent(w.Threshold), Unit: "%"},
	}
}

// fill puts figures, labels and the subject into their places.
func (w wording) fill(text [languages]string) string {
	labels := w.labels()
	return placeholder.ReplaceAllStringFunc(text[w.language], func(place string) string {
		name := strings.Trim(place, "{}")
		if label, ok := strings.CutPrefix(name, "@"); ok {
			return labels[label]
		}
		if name == "subject" {
			return w.Subject
		}
		for _, f := range w.figures() {
			if f.Name == name {
				return w.value(f)
			}
		}
		return "-"
	})
}

func (w wording) named(figure string) string {
	if words, ok := figureWords[figure]; ok {
		return words[w.language]
	}
	return figure
}

// value is a figure with its unit.
func (w wording) value(f alert.Figure) string {
	unit := f.Unit
	if words, ok := unitWords[unit]; ok {
		unit = words[w.language]
		if f.Value == "1" && w.language == english {
			unit = strings.TrimSuffix(unit, "s")
		}
	}
	return strings.TrimSpace(grouped(moment(f.Value)) + " " + unit)
}

// per is what a price is per.
func (w wording) per(unit string) string {
	if words, ok := perWords[unit]; ok {
		return words[w.language]
	}
	return unit
}

// moment is an instant as people read it; what is none stays.
func moment(text string) string {
	if at, err := metering.ParseInstant(text); err == nil {
		return at.Time().UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return text
}

var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// grouped has the digits of a decimal in threes; what is none stays.
func grouped(text string) string {
	if !decimal.MatchString(text) {
		return text
	}
	whole, _, _ := strings.Cut(text, ".")
	digits, sign := strings.TrimPrefix(whole, "-"), ""
	if len(digits) < len(whole) {
		sign = "-"
	}
	out := text[len(whole):]
	for len(digits) > 3 {
		digits, out = digits[:len(digits)-3], ","+digits[len(digits)-3:]+out
	}
	return sign + digits + out
}

// hint says what to do.
func (w wording) hint() string {
	h := w.Hint
	if h == nil {
		return ""
	}
	var lines []string
	say := func(words [languages]string, args ...any) {
		lines = append(lines, fmt.Sprintf(words[w.language], args...))
	}
	for _, o := range h.Options {
		if o.Price == "" {
			say([...]string{"%s of %s with %d MiB would do.", "%s 个 %s（显存 %d MiB）即可满足。"},
				o.Amount, o.SKU, o.MemoryMiB)
			continue
		}
		say([...]string{
			"%s of %s with %d MiB would do, for %s %s per %s.",
			"%s 个 %s（显存 %d MiB）即可满足，价格 %s %s/%s。",
		}, o.Amount, o.SKU, o.MemoryMiB, short(o.Price), o.Currency, w.per(o.Per))
	}
	if h.Stop != nil {
		say([...]string{"Stop lease %s: sessions %s.", "建议停止租约 %s：会话 %s。"}, h.Stop.Lease,
			strings.Join(h.Stop.Sessions, ", "))
	}
	if h.Lock != nil {
		say([...]string{
			"A commitment to %s now would keep a price near %s %s per %s.",
			"现在承诺使用 %s 可锁定接近 %s %s/%s 的价格。",
		}, h.Lock.SKU, h.Lock.Price, h.Lock.Currency, w.per(h.Lock.Per))
	}
	return strings.Join(lines, "\n")
}

// percent is a fraction in percent.
func percent(fraction string) string {
	a, err := money.ParseSigned(fraction)
	if err != nil {
		return fraction
	}
	return a.MulInt(big.NewInt(100)).String()
}

// short is an amount as people read it.
func short(amount string) string {
	a, err := money.ParseSigned(amount)
	if err != nil {
		return amount
	}
	return a.Round(2, money.HalfUp).Fixed(2)
}
