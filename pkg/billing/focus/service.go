package focus

import "strings"

// service is what FOCUS calls the SKUs of a family, and what one of them is.
type service struct {
	prefix                      string // of the SKUs
	category, subcategory, name string
	unit, units                 string // one and many of what is held or consumed
}

// services are the families of SKUs, the special before the general ones.
var services = []service{
	{"gpu.memory.", "Compute", "Virtual Machines", "GPU Rental", "GiB", "GiB"},
	{"gpu.", "Compute", "Virtual Machines", "GPU Rental", "GPU", "GPUs"},
	{"npu.", "Compute", "Virtual Machines", "NPU Rental", "NPU", "NPUs"},
	{"cpu.", "Compute", "Virtual Machines", "CPU Rental", "Core", "Cores"},
	{"memory.", "Compute", "Virtual Machines", "Memory Rental", "GiB", "GiB"},
	{"storage.", "Storage", "Other (Storage)", "Storage", "GiB", "GiB"},
	{"network.", "Networking", "Other (Networking)", "Network", "Unit", "Units"},
	{"interconnect.", "Networking", "Other (Networking)", "Interconnect", "Unit", "Units"},
	{
		"task.", "AI and Machine Learning", "Other (AI and Machine Learning)", "Training Tasks",
		"Task", "Tasks",
	},
	{
		"tokens.", "AI and Machine Learning", "Other (AI and Machine Learning)", "Training",
		"Token", "Tokens",
	},
	{"support.", "Management and Governance", "Support", "Support", "Unit", "Units"},
	{"license.", "Other", "Other (Other)", "Licenses", "Unit", "Units"},
	{"", "Other", "Other (Other)", "GPU Cloud", "Unit", "Units"},
}

// serviceOf returns the family of a SKU.
func serviceOf(sku string) *service {
	for i := range services {
		if strings.HasPrefix(sku, services[i].prefix) {
			return &services[i]
		}
	}
	panic("BUG: the last family has every SKU")
}

// per is what a price is for: its length, and its name in units.
type per struct {
	seconds int64 // 1 for what is consumed
	plural  string
}

var pers = map[string]per{
	"second": {1, "Seconds"},
	"hour":   {3600, "Hours"},
	"day":    {86_400, "Days"},
	"month":  {730 * 3600, "Months"},
	"unit":   {1, ""},
}

// pricingUnit names the unit of a price: GPU-Hours, Tokens, or 1000 Tokens that are sold together.
func (s *service) pricingUnit(of per, pack string) string {
	name := s.units
	if of.plural != "" {
		name = s.unit + "-" + of.plural
	}
	if pack != "" {
		return pack + " " + name
	}
	return name
}

// set writes what the service is.
func (s *service) set(r *row) {
	r[serviceCategory], r[serviceSubcategory], r[serviceName] = s.category, s.subcategory, s.name
}
