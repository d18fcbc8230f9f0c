// Package arch holds the rules of this repository's shape that no compiler and no linter knows:
// which part may import which, what pure code may not touch, how long things may be. Sources come
// in as text, so that every rule can be shown a bad sample; findings with their reasons go out. It
// reads all files whatever their build tags, and it never changes any.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Finding is one breach of a rule.
type Finding struct {
	File   string // slash-separated, from the repository's root
	Line   int    // 1 or above; 0: the file as a whole
	Reason string // what is wrong, and why that matters
}

// String returns the finding in the form that editors jump to.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Reason
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Reason)
}

// Source is a parsed Go file.
type Source struct {
	Path string // slash-separated, from the repository's root
	Text string
	File *ast.File
	fset *token.FileSet
}

// Parse parses a file's text.
func Parse(name, text string) (*Source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse source: %w", err)
	}
	return &Source{Path: name, Text: text, File: file, fset: fset}, nil
}

// Load parses all Go files below root, but for those of hidden folders, testdata and what is not
// ours.
func Load(root string) ([]*Source, error) {
	var sources []*Source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			hidden := strings.HasPrefix(base, ".") && name != root
			if hidden || base == "testdata" || base == "node_modules" || base == "vendor" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		source, err := Parse(filepath.ToSlash(rel), string(text))
		if err != nil {
			return err
		}
		sources = append(sources, source)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load sources: %w", err)
	}
	return sources, nil
}

// Dir returns the folder of the file: "." at the root.
func (s *Source) Dir() string { return path.Dir(s.Path) }

// Test reports whether the file is compiled for tests only.
func (s *Source) Test() bool { return strings.HasSuffix(s.Path, "_test.go") }

// generated is the mark that generators leave, see https://go.dev/s/generatedcode.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Generated reports whether a program wrote the file: its looks are not ours to judge.
func (s *Source) Generated() bool { return generated.MatchString(s.Text) }

// finding returns a finding at pos.
func (s *Source) finding(pos token.Pos, format string, args ...any) Finding {
	return Finding{s.Path, s.line(pos), fmt.Sprintf(format, args...)}
}

// line returns the line of pos.
func (s *Source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// part returns the part of the repository that a folder or an import path below the module
// belongs to: "pkg/money" for "pkg/money/internal/x", "schemas" for "schemas", "" for the root.
func part(dir string) string {
	elements := strings.Split(dir, "/")
	switch elements[0] {
	case ".", "":
		return ""
	case "pkg", "services", "tests":
		return strings.Join(elements[:min(2, len(elements))], "/")
	default:
		return elements[0]
	}
}
