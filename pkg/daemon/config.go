package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// envPrefix begins the name of every environment variable that Bind reads.
const envPrefix = "SUANPAN_"

// maxConfigBytes bounds a configuration file.
const maxConfigBytes = 1 << 20

// AddConfigFlag adds --config, the file that Bind reads, to flags.
func AddConfigFlag(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file of settings: a flag's name without dashes, and its value")
}

// Bind gives every flag of cmd that is not on the command line its value from the environment
// (--flush-rows is SUANPAN_FLUSH_ROWS; an empty variable counts as unset), else from the file that
// --config names, else leaves its default. The file is a YAML mapping of flag names to values; a
// list sets a repeatable flag. One file may serve all commands of a program: a name is known when
// any command has such a flag. Unknown names, values that do not parse and names that occur twice
// are errors that name the file and the line; all of them are reported together.
//
// Call it in a PersistentPreRunE.
func Bind(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if err := bindEnv(flags); err != nil {
		return err
	}
	config := flags.Lookup("config")
	if config == nil || config.Value.String() == "" {
		return nil
	}
	settings, err := readSettings(config.Value.String())
	if err != nil {
		return err
	}
	known := map[string]bool{}
	collectFlags(cmd.Root(), known)
	flags.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	var errs []error
	for _, s := range settings {
		errs = append(errs, s.apply(flags, known))
	}
	return errors.Join(errs...)
}

// EnvName returns the environment variable that Bind reads for a flag.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bindEnv sets the unset flags that have an environment variable.
func bindEnv(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		if secret, ok := f.Value.(*secretFile); ok {
			if text := os.Getenv(EnvName(secret.name)); text != "" {
				*secret.to = NewSecret(text)
				f.Changed = true
				return
			}
		}
		name := EnvName(f.Name)
		text := os.Getenv(name)
		if text == "" {
			return
		}
		if err := flags.Set(f.Name, text); err != nil {
			errs = append(errs, fmt.Errorf("read environment variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// collectFlags adds the names of all flags of cmd and of the commands below it to known.
func collectFlags(cmd *cobra.Command, known map[string]bool) {
	add := func(f *pflag.Flag) { known[f.Name] = true }
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, child := range cmd.Commands() {
		collectFlags(child, known)
	}
}

// setting is one entry of a configuration file.
type setting struct {
	file, name string
	line       int
	values     []string
}

// apply gives the flag of the setting's name its values, unless it has one already.
func (s setting) apply(flags *pflag.FlagSet, known map[string]bool) error {
	if s.name == "config" || s.name == "help" || !known[s.name] {
		if known[s.name+"-file"] {
			return s.errorf("%q is a secret: name its file in %q, or set %s",
				s.name, s.name+"-file", EnvName(s.name))
		}
		return s.errorf("unknown setting %q%s", s.name, suggest(s.name, known))
	}
	f := flags.Lookup(s.name)
	if f == nil || f.Changed { // of another command, or set more directly
		return nil
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err := list.Replace(s.values); err != nil {
			return s.errorf("set %s: %w", s.name, err)
		}
		f.Changed = true
		return nil
	}
	if len(s.values) != 1 {
		return s.errorf("set %s: a list of %d values for a flag that takes one",
			s.name, len(s.values))
	}
	if err := flags.Set(s.name, s.values[0]); err != nil {
		return s.errorf("%w", err)
	}
	return nil
}

// errorf returns an error that begins with the setting's file and line.
func (s setting) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{s.file, s.line}, args...)...)
}

// readSettings reads a configuration file.
func readSettings(path string) ([]setting, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	return parseSettings(path, data)
}

// parseSettings reads the entries of a configuration file called file.
func parseSettings(file string, data []byte) ([]setting, error) {
	if len(data) > maxConfigBytes {
		return nil, fmt.Errorf("read config %s: larger than %d bytes", file, maxConfigBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read config %s: %w", file, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read config %s: more than one document", file)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" { // nothing but comments
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: not a mapping of settings to values", file, root.Line)
	}
	var settings []setting
	var errs []error
	first := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		s := setting{file: file, name: key.Value, line: key.Line}
		if line, twice := first[s.name]; twice {
			errs = append(errs, s.errorf("%q is set on line %d already", s.name, line))
			continue
		}
		first[s.name] = s.line
		var err error
		if s.values, err = settingValues(value); err != nil {
			errs = append(errs, s.errorf("%s: %w", s.name, err))
			continue
		}
		settings = append(settings, s)
	}
	return settings, errors.Join(errs...)
}

// settingValues returns the texts of a scalar or of a list of scalars.
func settingValues(value *yaml.Node) ([]string, error) {
	nodes := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		nodes = value.Content
	}
	texts := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, errors.New("neither a value nor a list of values")
		}
		texts = append(texts, n.Value)
	}
	return texts, nil
}

// suggest returns a hint at the known name that is likely meant, or "".
func suggest(name string, known map[string]bool) string {
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	sort.Strings(names)
	best, least := "", 3 // names that differ by more are no typing errors
	for _, k := range names {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance counts the insertions, deletions and replacements of bytes between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
