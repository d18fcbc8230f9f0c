// Package deploy checks the files by which Suanpan is deployed, on a machine that has no container
// engine: that they parse, that what they refer to exists, that every setting they use is one of
// the command's, and every metric one that the code counts. Files come in as text, so that each
// check can be shown a bad sample; problems go out. It starts no container.
package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Compose is what the checks need to know of a compose file.
type Compose struct {
	Services map[string]Service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

// Service is one service of a compose file.
type Service struct {
	Image string `yaml:"image"`
	Build *struct {
		Context    string `yaml:"context"`
		Dockerfile string `yaml:"dockerfile"`
	} `yaml:"build"`
	Restart     string            `yaml:"restart"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	HealthCheck *struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
}

// ParseCompose reads a compose file.
func ParseCompose(text string) (Compose, error) {
	var c Compose
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("parse compose file: %w", err)
	}
	if len(c.Services) == 0 {
		return c, fmt.Errorf("parse compose file: no services")
	}
	return c, nil
}

// once reports whether the service ends when its work is done.
func (s Service) once() bool {
	return s.Restart == "no" || strings.HasPrefix(s.Restart, "on-failure")
}

// ours reports whether the service runs the command of this repository.
func (s Service) ours() bool { return s.Build != nil }

// Problems lists what would not start, or start wrong. exists says whether a path of the
// repository is there.
func (c Compose) Problems(exists func(path string) bool) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		report := func(format string, args ...any) {
			problems = append(problems, name+": "+fmt.Sprintf(format, args...))
		}
		if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "latest" {
			report("image %q has no version: two machines would run different things", s.Image)
		}
		if s.Build != nil && !exists(s.Build.Dockerfile) {
			report("no Dockerfile %q", s.Build.Dockerfile)
		}
		if s.HealthCheck == nil && !s.once() {
			report("no health check: nothing can wait for it")
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				report("port %s is open to other machines, without a password worth the name", port)
			}
		}
		problems = append(problems, c.mountProblems(name, exists)...)
		problems = append(problems, c.orderProblems(name)...)
	}
	return problems
}

// mountProblems lists the mounts of a service that refer to nothing.
func (c Compose) mountProblems(name string, exists func(path string) bool) []string {
	var problems []string
	for _, mount := range c.Services[name].Volumes {
		source, _, _ := strings.Cut(mount, ":")
		if path, ok := strings.CutPrefix(source, "./"); ok {
			if !exists(path) {
				problems = append(problems, fmt.Sprintf("%s: no file or folder %q", name, source))
			}
			continue
		}
		if _, ok := c.Volumes[source]; !ok {
			problems = append(problems, fmt.Sprintf("%s: no volume %q", name, source))
		}
	}
	return problems
}

// orderProblems lists what a service waits for in vain.
func (c Compose) orderProblems(name string) []string {
	var problems []string
	for other, on := range c.Services[name].DependsOn {
		target, ok := c.Services[other]
		problem := ""
		switch {
		case !ok:
			problem = "there is none"
		case on.Condition == "service_healthy" && target.HealthCheck == nil:
			problem = "it has no health check"
		case on.Condition == "service_completed_successfully" && !target.once():
			problem = "it is restarted for ever"
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s waits for %s: %s", name, other, problem))
		}
	}
	slices.Sort(problems)
	return problems
}

// Uses are the settings that a deployed command is given.
type Uses struct {
	Command string   // the subcommand, "rater"
	Flags   []string // with their dashes, "--kafka" or "-f"
	Env     []string // SUANPAN_KAFKA
}

// Uses lists what the compose file gives to the services of this repository.
func (c Compose) Uses() []Uses {
	var uses []Uses
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s := c.Services[name]
		if !s.ours() || len(s.Command) == 0 {
			continue
		}
		u := Uses{Command: s.Command[0]}
		for _, arg := range s.Command[1:] {
			if flag, _, _ := strings.Cut(arg, "="); strings.HasPrefix(flag, "-") {
				u.Flags = append(u.Flags, flag)
			}
		}
		for _, env := range slices.Sorted(maps.Keys(s.Environment)) {
			if strings.HasPrefix(env, "SUANPAN_") {
				u.Env = append(u.Env, env)
			}
		}
		uses = append(uses, u)
	}
	return uses
}

// helpFlag is a flag in the help that cobra prints.
var helpFlag = regexp.MustCompile(`(?m)^\s+(?:(-\w), |\s*)(--[a-z0-9-]+)`)

// Unknown lists the settings that the help text of the command does not know. An environment
// variable sets the flag of its name, or stands for a secret's file.
func (u Uses) Unknown(help string) []string {
	known := map[string]bool{}
	for _, m := range helpFlag.FindAllStringSubmatch(help, -1) {
		known[m[1]], known[m[2]] = true, true
	}
	var unknown []string
	for _, flag := range u.Flags {
		if !known[flag] {
			unknown = append(unknown, u.Command+" "+flag)
		}
	}
	for _, env := range u.Env {
		flag := "--" + strings.ReplaceAll(
			strings.ToLower(strings.TrimPrefix(env, "SUANPAN_")), "_", "-")
		if !known[flag] && !known[flag+"-file"] {
			unknown = append(unknown, u.Command+" "+env)
		}
	}
	return unknown
}

// metric is the name of one of our metrics.
var metric = regexp.MustCompile(`\bsuanpan_[a-z]+_[a-z0-9_]+\b`)

// Metrics lists the metrics that a text names, without the endings of a histogram's parts, sorted.
func Metrics(text string) []string {
	names := map[string]bool{}
	for _, name := range metric.FindAllString(text, -1) {
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, ending)
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// instructions are what a line of a Dockerfile may begin with.
var instructions = []string{
	"FROM", "RUN", "COPY", "ADD", "ARG", "ENV", "WORKDIR", "USER", "EXPOSE", "ENTRYPOINT", "CMD",
	"LABEL", "VOLUME", "HEALTHCHECK", "STOPSIGNAL", "SHELL",
}

// DockerfileProblems lists instructions that do not exist, sources that are not there, and an image
// that would run as root.
func DockerfileProblems(text string, exists func(path string) bool) []string {
	var problems []string
	user := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		switch words[0] {
		case "FROM":
			user = "root"
			if !strings.Contains(words[1], ":") {
				problems = append(problems, "image "+words[1]+" has no version")
			}
		case "USER":
			user = words[1]
		case "COPY":
			if strings.HasPrefix(words[1], "--from=") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if !exists(source) {
					problems = append(problems, "no file "+source+" to copy")
				}
			}
		}
		if !slices.Contains(instructions, words[0]) {
			problems = append(problems, "unknown instruction "+words[0])
		}
	}
	if user == "root" || user == "0" || user == "" {
		problems = append(problems, "the image runs as root")
	}
	return problems
}
