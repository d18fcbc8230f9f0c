package deploy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// kubeObject is what the checks need to know of a Kubernetes manifest.
type kubeObject struct {
	Kind  string `yaml:"kind"`
	Rules []struct {
		Groups    []string `yaml:"apiGroups"`
		Resources []string `yaml:"resources"`
		Verbs     []string `yaml:"verbs"`
	} `yaml:"rules"`
	Spec struct {
		Template struct {
			Spec struct {
				HostNetwork bool            `yaml:"hostNetwork"`
				HostPID     bool            `yaml:"hostPID"`
				HostIPC     bool            `yaml:"hostIPC"`
				Containers  []kubeContainer `yaml:"containers"`
				Volumes     []struct {
					Name     string `yaml:"name"`
					HostPath struct {
						Path string `yaml:"path"`
					} `yaml:"hostPath"`
				} `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type kubeContainer struct {
	Image    string   `yaml:"image"`
	Args     []string `yaml:"args"`
	Env      []struct{ Name, Value string }
	Security struct {
		Privileged bool `yaml:"privileged"`
		Escalation bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly   bool `yaml:"readOnlyRootFilesystem"`
		Caps       struct {
			Add  []string `yaml:"add"`
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []struct {
		Name     string `yaml:"name"`
		ReadOnly bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

func parseManifest(text string) ([]kubeObject, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var all []kubeObject
	for {
		var o kubeObject
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, o)
	}
}

// privileges lists what the manifest may do that an exporter needs not.
func privileges(objects []kubeObject) []string {
	var problems []string
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	for _, o := range objects {
		for _, r := range o.Rules {
			if !slices.Equal(r.Resources, []string{"pods"}) || !slices.Equal(r.Verbs, []string{"list"}) {
				report("may %v %v", r.Verbs, r.Resources)
			}
		}
		pod := o.Spec.Template.Spec
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			report("shares namespaces with the node")
		}
		for _, v := range pod.Volumes {
			switch v.HostPath.Path {
			case "", "/var/lib/suanpan/exporter", "/var/lib/kubelet/pod-resources":
			default:
				report("mounts %s of the node", v.HostPath.Path)
			}
		}
		for _, c := range pod.Containers {
			s := c.Security
			if s.Privileged || s.Escalation || !s.ReadOnly || len(s.Caps.Add) > 0 ||
				!slices.Equal(s.Caps.Drop, []string{"ALL"}) {
				report("has the privileges %+v", s)
			}
			for _, m := range c.Mounts {
				if m.Name == "pod-resources" && !m.ReadOnly {
					report("may write the kubelet's folder")
				}
			}
			if _, tag, ok := strings.Cut(c.Image, ":"); !ok || tag == "latest" {
				report("image %q has no version", c.Image)
			}
		}
	}
	return problems
}

func TestExporter_leastPrivileges(t *testing.T) {
	text := read(t, "deployments/exporter/daemonset.yaml")
	objects, err := parseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 5 || objects[4].Kind != "DaemonSet" {
		t.Fatalf("objects %+v", objects)
	}
	for _, problem := range privileges(objects) {
		t.Error(problem)
	}
	for _, change := range [][2]string{
		{"resources: [pods]", "resources: [pods, secrets]"},
		{"verbs: [list]", `verbs: ["*"]`},
		{"drop: [ALL]", "drop: [NET_RAW]"},
		{"drop: [ALL]", "drop: [ALL], add: [SYS_ADMIN]"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"},
		{"runtimeClassName: nvidia", "hostPID: true"},
		{", readOnly: true}", "}"},
		{"path: /var/lib/kubelet/pod-resources, type", "path: /, type"},
		{"suanpan-exporter:0.1.0", "suanpan-exporter"},
	} {
		bad, err := parseManifest(strings.Replace(text, change[0], change[1], 1))
		if err != nil {
			t.Fatal(err)
		}
		if len(privileges(bad)) == 0 {
			t.Errorf("%s instead of %s passes", change[1], change[0])
		}
	}
}

// execStart is the command line of a unit.
var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/suanpan (\S+)(.*)$`)

// TestExporter_settings asks the built command whether it knows what the files give it.
func TestExporter_settings(t *testing.T) {
	bin := build(t)
	help, err := exec.CommandContext(t.Context(), bin, "exporter", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	check := func(u Uses) {
		t.Helper()
		if len(u.Flags)+len(u.Env) == 0 || u.Command != "exporter" {
			t.Errorf("found only %+v", u)
		}
		for _, unknown := range u.Unknown(string(help)) {
			t.Errorf("the command does not know %s", unknown)
		}
	}
	objects, err := parseManifest(read(t, "deployments/exporter/daemonset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	container := objects[4].Spec.Template.Spec.Containers[0]
	uses := Uses{Command: container.Args[0]}
	for _, arg := range container.Args[1:] {
		flag, _, _ := strings.Cut(arg, "=")
		uses.Flags = append(uses.Flags, flag)
	}
	for _, env := range container.Env {
		if strings.HasPrefix(env.Name, "SUANPAN_") {
			uses.Env = append(uses.Env, env.Name)
		}
	}
	check(uses)
	unit := execStart.FindStringSubmatch(read(t, "deployments/exporter/suanpan-exporter.service"))
	if unit == nil {
		t.Fatal("the unit starts nothing")
	}
	uses = Uses{Command: unit[1]}
	for _, word := range strings.Fields(unit[2]) {
		if strings.HasPrefix(word, "--") {
			uses.Flags = append(uses.Flags, word)
		}
	}
	check(uses)
	var settings map[string]any
	config := read(t, "deployments/exporter/exporter.yaml")
	if err := yaml.Unmarshal([]byte(config), &settings); err != nil {
		t.Fatal(err)
	}
	uses = Uses{Command: "exporter"}
	for name := range settings {
		uses.Flags = append(uses.Flags, "--"+name)
	}
	check(uses)
}

func TestExporter_image(t *testing.T) {
	text := read(t, "deployments/exporter/Dockerfile")
	for _, problem := range DockerfileProblems(text, exists) {
		t.Error(problem)
	}
	if !strings.Contains(text, "CGO_ENABLED=1") {
		t.Error("the image cannot load NVIDIA's library: it is built without cgo")
	}
}

// TestExporter_unit lets systemd read the unit, where there is one.
func TestExporter_unit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("optional: no systemd-analyze here; the unit was not checked")
	}
	text := strings.ReplaceAll(read(t, "deployments/exporter/suanpan-exporter.service"),
		"/usr/local/bin/suanpan", "/bin/true")
	path := filepath.Join(t.TempDir(), "suanpan-exporter.service")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
	if err != nil || strings.Contains(string(out), "Unknown") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestExporter_slurmScripts runs prolog and epilog with a command that notes what it is given.
func TestExporter_slurmScripts(t *testing.T) {
	dir := t.TempDir()
	fake, noted := filepath.Join(dir, "suanpan"), filepath.Join(dir, "noted")
	write := func(exit string) {
		t.Helper()
		script := "#!/bin/bash\necho \"$@\" >> " + noted + "\necho no exporter >&2\nexit " + exit + "\n"
		if err := os.WriteFile(fake, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f := func(script, want string, code int, env ...string) {
		t.Helper()
		_ = os.Remove(noted)
		c := exec.CommandContext(t.Context(), filepath.Join(root, "deployments/exporter", script))
		c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "SUANPAN=" + fake}, env...)
		out, err := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != code {
			t.Errorf("%s ended with %d, %v: %s", script, got, err, out)
		}
		data, _ := os.ReadFile(noted) // not there: it was not called
		if got := strings.TrimSpace(string(data)); got != want {
			t.Errorf("%s calls %q, want %q", script, got, want)
		}
	}
	job := []string{
		"SLURM_JOB_ID=812", "SLURM_JOB_GPUS=0,3", "SLURM_JOB_ACCOUNT=acme", "SLURM_CLUSTER_NAME=main",
		"SLURM_JOB_USER=ada", "SLURM_JOB_PARTITION=gpu",
	}
	start := "lease start slurm/main/812 --tenant acme --project gpu --device 0,3 --label user=ada " +
		"--timeout 10s"
	end := "lease end slurm/main/812 --tenant acme --timeout 60s"
	write("0")
	f("prolog.sh", start, 0, job...)
	f("prolog.sh", start+" --resumed", 0, append(job, "SLURM_RESTART_COUNT=1")...)
	f("prolog.sh", "", 0, "SLURM_JOB_ID=812")
	f("epilog.sh", end, 0, job...)
	f("epilog.sh", "", 0, "SLURM_JOB_ID=812")
	write("1")
	f("prolog.sh", start, 1, job...)
	f("prolog.sh", start, 0, append(job, "SUANPAN_STRICT=0")...)
	f("epilog.sh", end, 1, job...)
	f("epilog.sh", end, 0, append(job, "SUANPAN_STRICT=0")...)
}

// TestExporter_scriptsUseFlagsThatExist compares the scripts with the command's help.
func TestExporter_scriptsUseFlagsThatExist(t *testing.T) {
	bin := build(t)
	for script, command := range map[string]string{"prolog.sh": "start", "epilog.sh": "end"} {
		help, err := exec.CommandContext(t.Context(), bin, "lease", command, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		flags := regexp.MustCompile(` --[a-z]+`).FindAllString(
			strings.ReplaceAll(read(t, "deployments/exporter/"+script), "(", " "), -1)
		u := Uses{Command: "lease " + command}
		for _, f := range flags {
			u.Flags = append(u.Flags, strings.TrimSpace(f))
		}
		if len(u.Flags) < 2 {
			t.Errorf("%s: found only %q", script, u.Flags)
		}
		for _, unknown := range u.Unknown(string(help)) {
			t.Errorf("%s: the command does not know %s", script, unknown)
		}
	}
}
