package biller

import (
	"encoding/json"
	"fmt"
	"math/big"
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
		m.Query = fmt.Sprintf("SELECT sku, purchase, band, sum(amount) FROM line_items "+
			"WHERE tenant = '%s' AND usage_period = '%.7s' GROUP BY ALL", a.Tenant, a.Period)
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
		m.Summary = fmt.Sprintf(overBecause[a.Why][w.language], a.Since, a.At)
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
	}
	return strings.TrimSpace(f.Value + " " + unit)
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
		}, o.Amount, o.SKU, o.MemoryMiB, short(o.Price), o.Currency, o.Per)
	}
	if h.Stop != nil {
		say([...]string{"Stop lease %s: sessions %s.", "建议停止租约 %s：会话 %s。"}, h.Stop.Lease,
			strings.Join(h.Stop.Sessions, ", "))
	}
	if h.Lock != nil {
		say([...]string{
			"A commitment to %s now would keep a price near %s %s per %s.",
			"现在承诺使用 %s 可锁定接近 %s %s/%s 的价格。",
		}, h.Lock.SKU, h.Lock.Price, h.Lock.Currency, h.Lock.Per)
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
