package biller

import (
	"regexp"
	"strings"

	"github.com/suanpan/suanpan/pkg/billing/alert"
	"github.com/suanpan/suanpan/pkg/catalog"
	"github.com/suanpan/suanpan/pkg/notify"
)

// Languages of messages.
const (
	english = iota
	chinese
	languages
)

// languageOf is the language of what is written in a tenant's language: all but Chinese is English.
func languageOf(tag string) int {
	if strings.HasPrefix(strings.ToLower(tag), "zh") {
		return chinese
	}
	return english
}

// phrase is a title and a summary, in each language. {name} is a figure with its unit, {@name} a
// label, {subject} the subject.
type phrase struct {
	severity notify.Severity
	title    [languages]string
	summary  [languages]string
}

// phrases are what alerts of policies say.
var phrases = map[alert.Kind]phrase{
	alert.Kind(catalog.IdleGPU): {
		notify.Warning,
		[languages]string{"The GPU of session {subject} is hardly used", "会话 {subject} 的 GPU 利用率低"},
		[languages]string{
			"Its utilisation was below {threshold} for {minutes}: {utilisation} on average, {peak} at most.",
			"其利用率已连续 {minutes}低于 {threshold}：平均 {utilisation}，最高 {peak}。",
		},
	},
	alert.Kind(catalog.Unreleased): {
		notify.Warning,
		[languages]string{"Lease {subject} does nothing and is not released", "租约 {subject} 闲置未释放"},
		[languages]string{
			"All its running sessions stayed below {threshold} for {minutes}. It costs money until it ends.",
			"其所有运行中的会话已连续 {minutes}低于 {threshold}，释放前持续计费。",
		},
	},
	alert.Kind(catalog.LowUtilisation): {
		notify.Info,
		[languages]string{"Card {subject} was used little for days", "显卡 {subject} 多日利用率低"},
		[languages]string{
			"While it was held in the last {days}, its utilisation was {utilisation}, below {threshold}.",
			"最近 {days}占用期间的利用率为 {utilisation}，低于 {threshold}。",
		},
	},
	alert.Kind(catalog.FleetUtilisation): {
		notify.Info,
		[languages]string{"The fleet is used less than it should be", "集群整体利用率低于目标"},
		[languages]string{
			"Over the last {hours}, {utilisation} of what was held was busy, below {threshold}.",
			"最近 {hours}，占用资源的利用率为 {utilisation}，低于 {threshold}。",
		},
	},
	alert.Kind(catalog.SpendAnomaly): {
		notify.Warning,
		[languages]string{"Spend per hour is out of its usual range", "每小时支出超出惯常范围"},
		[languages]string{
			"In the hour from {hour} it was {spend}; usual are {usual_from} to {usual_to}.",
			"{hour} 起的一小时支出为 {spend}，惯常范围为 {usual_from} 至 {usual_to}。",
		},
	},
	alert.Kind(catalog.ExporterSilent): {
		notify.Warning,
		[languages]string{"Nothing is heard of session {subject}", "会话 {subject} 无用量上报"},
		[languages]string{
			"It runs, but its last usage is of {last_seen}, {silent} ago. What is not reported is not " +
				"billed.",
			"会话仍在运行，但最近用量为 {last_seen}，距今 {silent}。未上报的用量不计费。",
		},
	},
	alert.Kind(catalog.PriceChange): {
		notify.Info,
		[languages]string{"The price of {@sku} has changed by {change}", "{@sku} 的价格变动 {change}"},
		[languages]string{"It was {before} and is {price}.", "原价 {before}，现价 {price}。"},
	},
	alert.Kind(catalog.PriceLow): {
		notify.Info,
		[languages]string{"The price of {@sku} in {@region} is low", "{@sku}（{@region}）价格处于低位"},
		[languages]string{
			"It is {price}, no more than {low}, the quantile {quantile} of {days}; the median is {median}.",
			"现价 {price}，不高于最近 {days}的 {quantile} 分位价 {low}，中位价为 {median}。",
		},
	},
	alert.Kind(catalog.DeadLetters): {
		notify.Warning,
		[languages]string{"Events cannot be rated: {subject}", "事件无法计费：{subject}"},
		[languages]string{
			"Dead letters that wait: {count}, the newest of {newest}. They are not billed until their " +
				"cause is mended and they are retried: suanpan deadletter.",
			"有 {count} 条死信待处理，最新为 {newest}。修复原因并重试（suanpan deadletter）之前不会计费。",
		},
	},
	alert.Kind(catalog.HeldInvoices): {
		notify.Warning,
		[languages]string{"Invoices wait for a person", "有账单待人工处理"},
		[languages]string{
			"Held documents: {count}, the oldest is {document} of {period} since {since}: {reason}.",
			"有 {count} 份账单被暂挂，最早的是 {period} 的 {document}，自 {since} 起：{reason}。",
		},
	},
}

// allSilent is what is said where nothing arrives from any exporter.
var allSilent = phrase{
	notify.Critical,
	[languages]string{"No usage arrives at all", "完全没有用量上报"},
	[languages]string{
		"{sessions} sessions run, and the last event came at {last_seen}, {silent} ago.",
		"有 {sessions} 个会话在运行，而最近的事件为 {last_seen}，距今 {silent}。",
	},
}

// budgetPhrase is what alerts of budgets say.
var budgetPhrase = phrase{
	notify.Warning,
	[languages]string{"Budget {@budget} has reached {threshold}", "预算 {@budget} 已达到 {threshold}"},
	[languages]string{
		"{spend} of {budget} are spent in {@period}. At this pace it will be {forecast}.",
		"{@period} 已支出 {spend}，预算为 {budget}。按当前速度，期末预计为 {forecast}。",
	},
}

// isOver is how titles of resolved alerts begin, and overBecause what their summaries say.
var isOver = [languages]string{"Resolved: ", "已恢复："}

var overBecause = map[alert.Why][languages]string{
	alert.Recovered: {"It is no longer so. It fired from %s to %s.", "现已恢复。触发时间为 %s 至 %s。"},
	alert.Over: {
		"The period that it was about is over. It fired from %s to %s.", "所涉期间已结束。触发时间为 %s 至 %s。",
	},
	alert.Ended: {
		"The rule that it was about was changed or ended. It fired from %s to %s.",
		"相关规则已变更或终止。触发时间为 %s 至 %s。",
	},
}

// figureWords are the names of figures.
var figureWords = map[string][languages]string{
	"before":       {"price before", "原价"},
	"budget":       {"budget", "预算"},
	"change":       {"change", "变动"},
	"count":        {"number", "数量"},
	"days":         {"days", "天数"},
	"deviation":    {"median deviation", "中位偏差"},
	"document":     {"document", "账单"},
	"forecast":     {"expected at the end of the period", "期末预计"},
	"from":         {"from", "生效时间"},
	"held":         {"held", "占用"},
	"history":      {"hours of history", "历史小时数"},
	"hour":         {"hour", "小时"},
	"hours":        {"hours", "小时数"},
	"last_seen":    {"last heard of", "最近上报"},
	"low":          {"low", "低位价"},
	"median":       {"median", "中位数"},
	"memory_total": {"GPU memory", "显存总量"},
	"memory_used":  {"GPU memory in use", "已用显存"},
	"minutes":      {"for at least", "时长阈值"},
	"newest":       {"newest", "最新"},
	"peak":         {"utilisation at most", "最高利用率"},
	"period":       {"period", "账期"},
	"price":        {"price", "现价"},
	"prices":       {"prices that change", "变动的价格数"},
	"quantile":     {"quantile", "分位数"},
	"reason":       {"reason", "原因"},
	"sessions":     {"sessions", "会话数"},
	"silent":       {"silent for", "静默时长"},
	"since":        {"since", "起始时间"},
	"sku":          {"SKU", "SKU"},
	"spend":        {"spend", "已支出"},
	"threshold":    {"threshold", "阈值"},
	"until":        {"until", "截至"},
	"used":         {"busy", "实际使用"},
	"usual_from":   {"usual from", "惯常下限"},
	"usual_to":     {"usual to", "惯常上限"},
	"utilisation":  {"utilisation", "利用率"},
}

// unitWords are units as people read them; one of them has no s.
var unitWords = map[string][languages]string{
	"min":        {"minutes", "分钟"},
	"h":          {"hours", "小时"},
	"d":          {"days", "天"},
	"unit-hours": {"unit-hours", "单位小时"},
}

// perWords are what prices are per.
var perWords = map[string][languages]string{
	"second": {"second", "秒"},
	"hour":   {"hour", "小时"},
	"day":    {"day", "天"},
	"month":  {"month", "月"},
}

// placeholder is a place of a phrase that an alert fills.
var placeholder = regexp.MustCompile(`\{@?[a-z_]+\}`)
