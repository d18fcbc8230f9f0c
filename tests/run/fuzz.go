package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// fuzz runs every fuzz target of the repository, one after another, for FUZZTIME each (default:
// 10s): go test takes one target at a time.
func fuzz(ctx context.Context, out io.Writer) result {
	duration := os.Getenv("FUZZTIME")
	if duration == "" {
		duration = "10s"
	}
	list, err := output(ctx, "go", "list", "-e", "-f",
		"{{.ImportPath}} {{.Dir}} {{join .TestGoFiles \" \"}} {{join .XTestGoFiles \" \"}}", "./...")
	if err != nil {
		_, _ = fmt.Fprintf(out, "list packages: %v\n", err)
		return result{failed: 1}
	}
	var r result
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		names, err := fuzzTargets(fields[1], fields[2:])
		if err != nil {
			_, _ = fmt.Fprintf(out, "find fuzz targets: %v\n", err)
			r.failed++
		}
		for _, name := range names {
			one := check(ctx, out, "go", "test", "-run", "^$", "-fuzz", "^"+name+"$",
				"-fuzztime", duration, fields[0])
			r.passed += one.passed
			r.failed += one.failed
		}
	}
	return r
}

// fuzzTargets lists the fuzz targets in the named files of a folder.
func fuzzTargets(dir string, files []string) ([]string, error) {
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil,
			parser.SkipObjectResolution)
		if err != nil {
			return names, fmt.Errorf("parse test: %w", err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil &&
				strings.HasPrefix(f.Name.Name, "Fuzz") && takesF(f) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}

// takesF reports whether a function's one parameter is a *testing.F.
func takesF(f *ast.FuncDecl) bool {
	if f.Type.Params.NumFields() != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	selector, ok := pointer.X.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "F"
}
