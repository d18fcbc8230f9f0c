package clickhouse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// LibraryVersion is the libchdb release that this package is built and tested for;
// deployments/setup/libchdb.versions pins the same.
const LibraryVersion = "26.7.3-stable.1"

// EnvLibrary names the environment variable that holds the path of libchdb.
const EnvLibrary = "SUANPAN_LIBCHDB"

// ErrNoLibrary says that libchdb is nowhere to be found. Its text tells how to get it.
var ErrNoLibrary = errors.New("libchdb is missing: run deployments/setup/libchdb.sh, or name it " +
	"with --lib or " + EnvLibrary + ", or use docker compose, which needs none")

// FindLibrary returns the path of libchdb: the given one, else that of [EnvLibrary], else the one
// in the user's cache, where the set-up script puts it. A path that is named and missing is an
// error of its own; with none at all the error is [ErrNoLibrary].
func FindLibrary(path string) (string, error) {
	for _, named := range []string{path, os.Getenv(EnvLibrary)} {
		if named == "" {
			continue
		}
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("find libchdb: %w", err)
		}
		return named, nil
	}
	cached, err := cachedLibrary()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(cached); err != nil {
		return "", fmt.Errorf("find libchdb in %s: %w", cached, ErrNoLibrary)
	}
	return cached, nil
}

// cachedLibrary is where the set-up script puts the library.
func cachedLibrary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w", err)
	}
	name := "libchdb.so"
	if runtime.GOOS == "darwin" {
		name = "libchdb.dylib"
	}
	return filepath.Join(cache, "suanpan", "libchdb", LibraryVersion, name), nil
}
