// Package fonts finds the font file that documents are set in. It looks at files only; whether a
// font is fit for documents, the PDF renderer says.
package fonts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/suanpan/suanpan/pkg/billing/pdf"
)

// Variable names the environment variable that names a font file to use instead of the system's.
const Variable = "SUANPAN_FONT"

// maxBytes bounds what is read of a font file: those with all Chinese characters have 5 to 60 MB.
const maxBytes = 128 << 20

// remedy says how to mend that there is no font.
const remedy = "install Debian's fonts-wqy-microhei (deployments/setup/font.sh does), " +
	"or name a TrueType font with Chinese characters in " + Variable

// Find returns the font that documents are set in: the file that SUANPAN_FONT names, or else the
// first that is there and fit of WenQuanYi Micro Hei where systems, and deployments/setup/font.sh,
// put it. It is the same font for all languages, so that a document looks the same wherever it is
// rendered. The error says how to mend it.
func Find() ([]byte, error) {
	if path := os.Getenv(Variable); path != "" {
		font, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("read the font that %s names: %w; %s", Variable, err, remedy)
		}
		return font, nil
	}
	return first(paths())
}

// first returns the first font that is there and fit.
func first(paths []string) ([]byte, error) {
	var unfit error
	for _, path := range paths {
		font, err := read(path)
		switch {
		case err == nil:
			return font, nil
		case errors.Is(err, fs.ErrNotExist):
		default:
			unfit = errors.Join(unfit, err)
		}
	}
	if unfit != nil {
		return nil, fmt.Errorf("find a font for documents: %w; %s", unfit, remedy)
	}
	return nil, fmt.Errorf("find a font for documents: there is none; %s", remedy)
}

// paths lists where the font may be: the user's cache first, where set-up puts it.
func paths() []string {
	var list []string
	if cache, err := os.UserCacheDir(); err == nil {
		list = append(list, filepath.Join(cache, "suanpan", "fonts", "wqy-microhei.ttc"))
	}
	if runtime.GOOS == "windows" {
		return append(list, filepath.Join(os.Getenv("WINDIR"), "Fonts", "wqy-microhei.ttc"))
	}
	for _, dir := range []string{
		"/usr/share/fonts/truetype/wqy",       // Debian, Ubuntu
		"/usr/share/fonts/wqy-microhei",       // Fedora, openEuler
		"/usr/share/fonts/wenquanyi",          // Arch
		"/usr/share/fonts/wqy-microhei-fonts", // openSUSE, Anolis
		"/usr/local/share/fonts",
		"/Library/Fonts",
	} {
		list = append(list, filepath.Join(dir, "wqy-microhei.ttc"),
			filepath.Join(dir, "wqy-microhei.ttf"))
	}
	return list
}

// read reads a font and checks that it is fit.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read font: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return nil, fmt.Errorf("read font %s: it is no file of at most %d MB", path, maxBytes>>20)
	}
	font, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read font: %w", err)
	}
	if err := pdf.CheckFont(font); err != nil {
		return nil, fmt.Errorf("read font %s: %w", path, err)
	}
	return font, nil
}
