//go:build !linux && !darwin

package clickhouse

import "errors"

var errPlatform = errors.New("libchdb exists for Linux and macOS only; use docker compose")

func openLibrary(string) (uintptr, error) { return 0, errPlatform }

func lookUp(uintptr, string) (uintptr, error) { return 0, errPlatform }
