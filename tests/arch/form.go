package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What fits on a screen can be read; what does not wants a name for one of its pieces.
const (
	maxFunctionLines = 70
	maxFileLines     = 400
	maxColumns       = 100 // a tab counts as one, as in the linter
)

// Docs finds packages without a comment, or with more than one, and exported names without any.
func Docs(sources []*Source) []Finding {
	var findings []Finding
	comments := map[string][]string{} // folder -> files with a package comment
	first := map[string]string{}      // folder -> one of its files
	for _, s := range sources {
		if s.Test() {
			continue
		}
		if s.File.Doc != nil {
			comments[s.Dir()] = append(comments[s.Dir()], s.Path)
		}
		if first[s.Dir()] == "" {
			first[s.Dir()] = s.Path
		}
		if !s.Generated() {
			findings = append(findings, undocumented(s)...)
		}
	}
	for dir, file := range first {
		switch with := comments[dir]; len(with) {
		case 0:
			findings = append(findings, Finding{File: file, Reason: "package " + dir +
				" has no comment: say what it hides, what comes in and goes out, and what it never does"})
		case 1:
		default:
			slices.Sort(with)
			findings = append(findings, Finding{File: with[1], Reason: "package " + dir +
				" has a second comment: only one is shown first, so keep one (the other: " +
				with[0] + ")"})
		}
	}
	return findings
}

// undocumented finds exported names without a comment.
func undocumented(s *Source) []Finding {
	var findings []Finding
	report := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		documented := slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d != nil })
		if name.IsExported() && !documented {
			findings = append(findings, s.finding(name.Pos(),
				"%s has no comment: an exported name says its meaning, units and errors", name.Name))
		}
	}
	for _, decl := range s.File.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if receiverExported(d) {
				report(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch v := spec.(type) {
				case *ast.TypeSpec:
					report(v.Name, v.Doc, d.Doc)
				case *ast.ValueSpec:
					for _, name := range v.Names {
						report(name, v.Doc, v.Comment, d.Doc)
					}
				}
			}
		}
	}
	return findings
}

// receiverExported reports whether a function is one, or a method of an exported type.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch v := t.(type) {
		case *ast.StarExpr:
			t = v.X
		case *ast.IndexExpr:
			t = v.X
		case *ast.IndexListExpr:
			t = v.X
		case *ast.Ident:
			return v.IsExported()
		default:
			panic(fmt.Sprintf("BUG: a receiver of type %T", t))
		}
	}
}

// Size finds what is too long: functions and files, but for tests, and lines.
func Size(sources []*Source) []Finding {
	var findings []Finding
	for _, s := range sources {
		if s.Generated() {
			continue
		}
		findings = append(findings, longLines(s)...)
		if s.Test() {
			continue
		}
		if lines := strings.Count(s.Text, "\n"); lines > maxFileLines {
			findings = append(findings, Finding{File: s.Path, Reason: fmt.Sprintf(
				"file of %d lines, at most %d: move a concept to a file of its own",
				lines, maxFileLines)})
		}
		for _, decl := range s.File.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := s.line(d.End()) - s.line(d.Pos()) + 1; lines > maxFunctionLines {
				findings = append(findings, s.finding(d.Pos(),
					"%s has %d lines, at most %d: name one of its pieces",
					d.Name.Name, lines, maxFunctionLines))
			}
		}
	}
	return findings
}

// longLines finds lines that do not fit. JSON in tests and addresses cannot be broken.
func longLines(s *Source) []Finding {
	var findings []Finding
	number := 0
	for line := range strings.SplitSeq(s.Text, "\n") {
		number++
		columns := utf8.RuneCountInString(line)
		if columns <= maxColumns || strings.Contains(line, "https://") {
			continue
		}
		if s.Test() && (strings.Contains(line, `{"`) || strings.Contains(line, `":`)) {
			continue
		}
		findings = append(findings, Finding{
			s.Path, number,
			fmt.Sprintf("line of %d columns, at most %d", columns, maxColumns),
		})
	}
	return findings
}

// banned are names that say nothing about what a package hides.
var banned = []string{
	"util", "utils", "common", "helper", "helpers", "type", "types", "model", "models",
	"interfaces", "base", "misc", "shared", "lib", "manager",
}

// Names finds packages whose name says nothing.
func Names(sources []*Source) []Finding {
	var findings []Finding
	for _, s := range sources {
		name := strings.TrimSuffix(s.File.Name.Name, "_test")
		for _, n := range []string{name, path.Base(s.Dir())} {
			if slices.Contains(banned, n) {
				findings = append(findings, s.finding(s.File.Name.Pos(),
					"package %s: the name says nothing about what it hides; use a noun of the domain", n))
				break
			}
		}
		if name != strings.ToLower(name) || strings.Contains(name, "_") {
			findings = append(findings, s.finding(s.File.Name.Pos(),
				"package %s: one lower-case noun", name))
		}
	}
	return findings
}

// forbidden are texts that no file may hold. They are put together here, or this file held them.
var forbidden = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{
		regexp.MustCompile(`(^|[^\w./-])/` + `work/`),
		"a path of one machine: use one that is relative to the repository",
	},
	{
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
		"unfinished work: finish it, or file an issue and say what holds now",
	},
}

// Text finds texts that no committed file may hold. Binary files are not read.
func Text(file, text string) []Finding {
	if strings.Contains(text, "\x00") || path.Base(file) == "go.sum" {
		return nil
	}
	var findings []Finding
	for _, f := range forbidden {
		for _, at := range f.pattern.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[1]-1], "\n")
			findings = append(findings, Finding{
				file, line,
				strings.TrimSpace(text[at[0]:at[1]]) + ": " + f.reason,
			})
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return a.Line - b.Line })
	return findings
}
