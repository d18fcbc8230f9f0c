//go:build !cgo || !linux

package nvml_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/suanpan/suanpan/pkg/nvml"
)

func TestOpen_withoutCgoSaysWhatToDo(t *testing.T) {
	l, err := nvml.Open("")
	if l != nil || !errors.Is(err, nvml.ErrUnavailable) ||
		!strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("open: %v, %v", l, err)
	}
}
