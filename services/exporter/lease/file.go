package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// fileBytes bounds a file of leases.
const fileBytes = 4 << 20

// File is a source of leases in a YAML file: a mapping with the list `leases`, each of which is a
// Document. It is read whole each time, so that a change counts at once; replace it by renaming
// another one over it. A lease holds until it is taken out of the file or its end has come, through
// restarts of the node, too. A file that cannot be read, or has any fault, tells nothing.
type File struct{ path string }

// NewFile returns the source of a file, which need not be there yet.
func NewFile(path string) *File { return &File{path} }

// Name implements Source.
func (*File) Name() string { return "file" }

// Leases implements Source.
func (f *File) Leases(context.Context) ([]Lease, error) {
	data, err := readMost(f.path, fileBytes)
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	leases, err := parseFile(data)
	if err != nil {
		return nil, fmt.Errorf("read leases from %s: %w", f.path, err)
	}
	return leases, nil
}

// readMost reads a file of at most so many bytes.
func readMost(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}

func parseFile(data []byte) ([]Lease, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var content struct {
		Leases []Document `yaml:"leases"`
	}
	if err := decoder.Decode(&content); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty; without leases it says: leases: []")
		}
		return nil, err
	}
	leases := make([]Lease, 0, len(content.Leases))
	known := map[string]bool{}
	for i := range content.Leases {
		l, err := content.Leases[i].parse()
		if err != nil {
			return nil, fmt.Errorf("lease %d (%.40q): %w", i+1, content.Leases[i].Lease, err)
		}
		l.Key = key(l.Tenant, l.Lease)
		if !l.Start.IsZero() && !l.End.IsZero() && l.End.Before(l.Start) {
			return nil, fmt.Errorf("lease %d (%.40q) ends before it starts", i+1, l.Lease)
		}
		if known[l.Key] {
			return nil, fmt.Errorf("lease %d (%.40q) is there twice", i+1, l.Lease)
		}
		known[l.Key] = true
		leases = append(leases, l)
	}
	return leases, nil
}
