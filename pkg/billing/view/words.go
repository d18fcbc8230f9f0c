package view

import "github.com/suanpan/suanpan/pkg/billing"

// words are all fixed texts of one language.
type words struct {
	Tag string // BCP 47

	Invoice, CreditNote, Draft      string
	From, To                        string
	Number, IssueDate, DueDate      string
	Period, Until, Tenant, Contract string
	Reference, Timezone             string
	Cites, Reason                   string
	TaxID, Registration             string
	Line, Description, Quantity     string
	UnitPrice, Tax, Amount          string
	Average, UpTo, Beyond           string
	Packages, Late                  string
	Projects, Teams, Models         string
	ModelVersions, Stages           string
	None, OtherNames, OtherLines    string
	ByStage, ByProject              string
	Subtotal, TaxOn, TaxIncluded    string
	Total, Prepaid, Due, Credited   string
	Payment, Bank, Account, Holder  string
	PayBy, PayReference, Notes      string
	Proof, Rows, Position           string
	Page, NoLines, Continued        string

	kinds      map[billing.LineKind]string
	purchases  map[string]string
	bands      map[string]string
	stages     map[string]string
	categories map[string]string
	per        map[string]string // of prices and of quantities
	unitSecond string
	colon      string
}

// english are the texts of documents in English, and of those in a language that we lack.
var english = words{
	Tag:     "en",
	Invoice: "Invoice", CreditNote: "Credit note", Draft: "Draft",
	From: "From", To: "Bill to",
	Number: "Number", IssueDate: "Issue date", DueDate: "Due date",
	Period: "Period", Until: "to", Tenant: "Tenant", Contract: "Contract",
	Reference: "Your reference", Timezone: "Time zone",
	Cites: "Credits invoice", Reason: "Reason",
	TaxID: "Tax ID", Registration: "Registration",
	Line: "#", Description: "Description", Quantity: "Quantity",
	UnitPrice: "Unit price", Tax: "Tax", Amount: "Amount",
	Average: "average", UpTo: "up to", Beyond: "beyond",
	Packages: "sold in packages of", Late: "Late usage of",
	Projects: "Projects", Teams: "Teams", Models: "Models",
	ModelVersions: "Versions", Stages: "Stages",
	None: "(none)", OtherNames: "others", OtherLines: "not attributed",
	ByStage: "Cost by stage", ByProject: "Cost by project",
	Subtotal: "Subtotal", TaxOn: "on", TaxIncluded: "included",
	Total: "Total", Prepaid: "Paid from balance", Due: "Amount due", Credited: "Amount credited",
	Payment: "Payment", Bank: "Bank", Account: "Account", Holder: "Account holder",
	PayBy: "Please pay by", PayReference: "Payment reference", Notes: "Notes",
	Proof: "Proof", Rows: "rows", Position: "usage log",
	Page: "Page %d of %d", NoLines: "There was nothing to bill in this period.",
	Continued: "continued",
	kinds: map[billing.LineKind]string{
		billing.UsageLine: "Usage", billing.CommitmentLine: "Commitment",
		billing.AllowanceLine: "Allowance", billing.MinimumLine: "Minimum spend",
		billing.CreditLine: "Credit", billing.LateLine: "Late usage",
	},
	purchases: map[string]string{
		"on_demand": "On demand", "reserved": "Reserved", "spot": "Spot", "per_task": "Per task",
	},
	bands:  map[string]string{"standard": "standard"},
	stages: map[string]string{},
	categories: map[string]string{
		"S": "Tax", "Z": "Zero rated", "E": "Exempt from tax", "AE": "Reverse charge",
		"O": "Outside the scope of tax", "G": "Export", "K": "Intra-community supply",
		"L": "IGIC", "M": "IPSI",
	},
	per: map[string]string{
		"second": "s", "hour": "h", "day": "d", "month": "month", "unit": "unit",
	},
	unitSecond: "unit-seconds",
	colon:      ": ",
}

// chinese are the texts of documents in Chinese. The title of an invoice is the word for a bill:
// the other one is what only the tax platform may issue.
var chinese = words{
	Tag:     "zh-CN",
	Invoice: "账单", CreditNote: "贷记通知", Draft: "草稿",
	From: "卖方", To: "买方",
	Number: "编号", IssueDate: "开具日期", DueDate: "付款期限",
	Period: "账期", Until: "至", Tenant: "租户", Contract: "合同",
	Reference: "贵方参考号", Timezone: "时区",
	Cites: "所冲减账单", Reason: "原因",
	TaxID: "税号", Registration: "注册号",
	Line: "行", Description: "项目说明", Quantity: "数量",
	UnitPrice: "单价", Tax: "税率", Amount: "金额",
	Average: "平均", UpTo: "不超过", Beyond: "超出部分",
	Packages: "按包销售，每包", Late: "迟到用量，所属账期",
	Projects: "项目", Teams: "团队", Models: "模型",
	ModelVersions: "模型版本", Stages: "阶段",
	None: "（未标注）", OtherNames: "个其他", OtherLines: "未归属",
	ByStage: "按阶段统计费用", ByProject: "按项目统计费用",
	Subtotal: "小计", TaxOn: "计税金额", TaxIncluded: "已含",
	Total: "合计", Prepaid: "余额支付", Due: "应付金额", Credited: "冲减金额",
	Payment: "付款信息", Bank: "开户行", Account: "账号", Holder: "户名",
	PayBy: "付款期限", PayReference: "付款备注", Notes: "备注",
	Proof: "校验", Rows: "行", Position: "用量日志",
	Page: "第 %d 页，共 %d 页", NoLines: "本账期没有需要计费的用量。",
	Continued: "续",
	kinds: map[billing.LineKind]string{
		billing.UsageLine: "用量", billing.CommitmentLine: "承诺容量费",
		billing.AllowanceLine: "资源包", billing.MinimumLine: "最低消费补足",
		billing.CreditLine: "抵扣", billing.LateLine: "迟到用量",
	},
	purchases: map[string]string{
		"on_demand": "按需", "reserved": "预留", "spot": "竞价", "per_task": "按任务",
	},
	bands: map[string]string{"standard": "标准时段", "off_peak": "低谷时段", "peak": "高峰时段"},
	stages: map[string]string{
		"validation": "验证", "pretraining": "预训练", "finetuning": "微调",
	},
	categories: map[string]string{
		"S": "税额", "Z": "零税率", "E": "免税", "AE": "反向征收", "O": "不属于征税范围",
		"G": "出口", "K": "共同体内供应", "L": "IGIC", "M": "IPSI",
	},
	per: map[string]string{
		"second": "秒", "hour": "小时", "day": "天", "month": "月", "unit": "单位",
	},
	unitSecond: "单位·秒",
	colon:      "：",
}

// wordsOf returns the texts of a document's language.
func wordsOf(language string) *words {
	if language == "zh" {
		return &chinese
	}
	return &english
}

// word returns what a code is called, which is the code itself where nothing is known.
func word(of map[string]string, code string) string {
	if w, ok := of[code]; ok {
		return w
	}
	return code
}
