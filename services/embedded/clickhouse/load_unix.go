//go:build linux || darwin

package clickhouse

import "github.com/ebitengine/purego"

// openLibrary maps the library into the process. It is never unmapped: the engine starts threads.
func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func lookUp(library uintptr, name string) (uintptr, error) {
	return purego.Dlsym(library, name)
}
