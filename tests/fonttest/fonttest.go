// Package fonttest gives tests the font that documents are set in. It is no part of the program,
// whose services/fonts is built on what these tests check.
package fonttest

import (
	"os"
	"path/filepath"
	"testing"
)

// Font returns WenQuanYi Micro Hei, or the font that SUANPAN_FONT names. Without one the test is
// skipped.
func Font(t testing.TB) []byte {
	t.Helper()
	paths := []string{os.Getenv("SUANPAN_FONT")}
	if cache, err := os.UserCacheDir(); err == nil {
		paths = append(paths, filepath.Join(cache, "suanpan", "fonts", "wqy-microhei.ttc"))
	}
	for _, path := range append(paths, "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc") {
		if font, err := os.ReadFile(path); err == nil {
			return font
		}
	}
	t.Skip("no font with Chinese characters: deployments/setup/font.sh installs one")
	return nil
}
