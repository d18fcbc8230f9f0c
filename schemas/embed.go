package schemas

import "embed"

// JSON holds the JSON Schemas (draft 2020-12): events/{type}.json, catalog/{kind}.v1.json,
// lineitem.v1.json, invoice.v1.json, and defs.v1.json, which the others refer to.
//
//go:embed events/*.json catalog/*.json defs.v1.json lineitem.v1.json invoice.v1.json
var JSON embed.FS

// Examples holds one event in each file: examples/good/*.json are accepted, and
// examples/bad/{reason}__{what}.json are rejected for that reason.
//
//go:embed examples/good/*.json examples/bad/*.json
var Examples embed.FS
