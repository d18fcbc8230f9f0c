package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pure are the parts that decide and do nothing else: the same input gives the same output, on any
// machine, at any time.
var pure = []string{
	"pkg/money", "pkg/metering", "pkg/catalog", "pkg/rating", "pkg/billing", "pkg/advice",
}

// exact are the parts through which billed quantities and amounts go.
var exact = append([]string{"pkg/pipeline"}, pure...)

// geometry is where text is put on pages: lengths are floats there, amounts are text already.
const geometry = "pkg/billing/pdf/paper"

// impure are the libraries that a pure part may not import, with what is below them.
var impure = map[string]string{
	"os":           "pure code does no I/O: take bytes or an io.Reader",
	"net":          "pure code does no I/O: adapters do",
	"log":          "pure code logs nothing: return it",
	"syscall":      "pure code does not know the system it runs on",
	"io/ioutil":    "pure code does no I/O: take bytes or an io.Reader",
	"math/rand":    "pure code gives the same result every time",
	"crypto/rand":  "pure code gives the same result every time",
	"database/sql": "pure code does no I/O: adapters do",
	"runtime":      "pure code does not know the system it runs on",
}

// impureNames are names that a pure part may not use of packages that it may import.
var impureNames = map[string]map[string]string{
	"time": reasons("pure code reads no clock and waits for nothing: take `now`",
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
		"Local"),
	"fmt": reasons("pure code does no I/O: return what is to be printed",
		"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"),
}

// reasons gives all names the same reason.
func reasons(reason string, names ...string) map[string]string {
	m := make(map[string]string, len(names))
	for _, name := range names {
		m[name] = reason
	}
	return m
}

// Pure finds what makes a pure part depend on more than its input, and floats where billed
// quantities and amounts go. Tests may do both.
func Pure(sources []*Source) []Finding {
	var findings []Finding
	for _, s := range sources {
		if s.Test() {
			continue
		}
		if slices.Contains(pure, part(s.Dir())) {
			findings = append(findings, impureImports(s)...)
			findings = append(findings, effects(s)...)
		}
		if slices.Contains(exact, part(s.Dir())) && s.Dir() != geometry {
			findings = append(findings, floats(s)...)
		}
	}
	return findings
}

// impureImports finds the libraries of the list above.
func impureImports(s *Source) []Finding {
	var findings []Finding
	for _, name := range imported(s) {
		for library, reason := range impure {
			if name.path == library || strings.HasPrefix(name.path, library+"/") {
				findings = append(findings,
					s.finding(name.pos, "import of %s: %s", name.path, reason))
			}
		}
	}
	return findings
}

// effects finds goroutines, clocks and prints.
func effects(s *Source) []Finding {
	var findings []Finding
	names := map[string]string{} // local name -> path
	for _, name := range imported(s) {
		names[name.local] = name.path
	}
	ast.Inspect(s.File, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			findings = append(findings, s.finding(n.Pos(),
				"go statement: pure code starts no goroutine"))
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				findings = append(findings, s.finding(n.Pos(),
					"%s: pure code does no I/O", id.Name))
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			library := names[id.Name]
			if reason := impureNames[library][n.Sel.Name]; reason != "" {
				findings = append(findings, s.finding(n.Pos(),
					"%s.%s: %s", library, n.Sel.Name, reason))
			}
		}
		return true
	})
	return findings
}

// floats finds float types, literals and conversions.
func floats(s *Source) []Finding {
	const reason = "no float touches a billed quantity or an amount: use whole units or pkg/money"
	var findings []Finding
	names := map[string]string{}
	for _, name := range imported(s) {
		names[name.local] = name.path
	}
	ast.Inspect(s.File, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Ident:
			switch n.Name {
			case "float32", "float64", "complex64", "complex128":
				findings = append(findings, s.finding(n.Pos(), "%s: %s", n.Name, reason))
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT || n.Kind == token.IMAG {
				findings = append(findings, s.finding(n.Pos(), "literal %s: %s", n.Value, reason))
			}
		case *ast.SelectorExpr:
			id, _ := n.X.(*ast.Ident)
			inMath := id != nil && names[id.Name] == "math" && !wholeLimit(n.Sel.Name)
			if inMath || strings.Contains(n.Sel.Name, "Float") {
				findings = append(findings, s.finding(n.Sel.Pos(), "%s: %s", n.Sel.Name, reason))
			}
		}
		return true
	})
	return findings
}

// wholeLimit reports whether a name of package math is a limit of an integer type.
func wholeLimit(name string) bool {
	return strings.HasPrefix(name, "MaxInt") || strings.HasPrefix(name, "MinInt") ||
		strings.HasPrefix(name, "MaxUint")
}

// importedName is an import as its file sees it.
type importedName struct {
	local, path string
	pos         token.Pos
}

// imported lists the imports of a file. Without a name of its own, the local name is guessed from
// the path, which is right for the standard library.
func imported(s *Source) []importedName {
	names := make([]importedName, 0, len(s.File.Imports))
	for _, spec := range s.File.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic("BUG: the parser let a malformed import pass: " + spec.Path.Value)
		}
		local := path.Base(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names = append(names, importedName{local, p, spec.Pos()})
	}
	return names
}
