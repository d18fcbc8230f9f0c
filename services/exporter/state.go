package exporter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/suanpan/suanpan/services/exporter/lease"
	"github.com/suanpan/suanpan/services/exporter/session"
)

// stateName is the file of the engine's state: its checksum on the first line, then JSON.
const stateName = "sessions.json"

// loadState reads the engine's state. One that is damaged is put aside: sources then tell what goes
// on, and sessions whose start no source knows begin anew, without a second that is billed twice.
func loadState(dir string, log *slog.Logger) (session.State, error) {
	var state session.State
	path := filepath.Join(dir, stateName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("read state: %w", err)
	}
	sum, text, _ := bytes.Cut(data, []byte("\n"))
	if string(sum) == checksum(text) {
		if err := json.Unmarshal(text, &state); err == nil {
			return state, nil
		}
	}
	log.Error("the state of sessions is damaged; it is put aside, and sources are asked anew",
		"file", path, "aside", path+".damaged")
	if err := os.Rename(path, path+".damaged"); err != nil {
		return state, fmt.Errorf("put damaged state aside: %w", err)
	}
	return session.State{}, nil
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// save makes the engine's state durable.
func (e *Exporter) save() error {
	text, err := json.Marshal(e.engine.State())
	if err != nil {
		panic("BUG: the state does not marshal: " + err.Error())
	}
	data := append([]byte(checksum(text)+"\n"), text...)
	if err := lease.WriteFile(filepath.Join(e.config.Dir, stateName), data); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}
