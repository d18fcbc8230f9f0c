package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	slurmTimeout = 20 * time.Second
	slurmBytes   = 64 << 20 // of an answer
)

// Slurm is the source of leases in a Slurm cluster: `scontrol show job`, whose JSON and whose lines
// (-d -o) are both understood; lines only where users can be trusted not to write fields into the
// names of their jobs. A job's tenant is its account. Its comment, which is the user's, may say
// "suanpan project=llm stage=pretraining": a project and labels. Its admin comment may also say
// tenant, purchase and region. A lease is named by job and cluster; a job that is requeued goes on
// as a resumed session. The indexes of GRES are NVML's, as with AutoDetect=nvml. MIG devices have
// other ones, which say nothing of the device: a job that has some is an error, and leases there
// are to begin with UUIDs, by "suanpan lease start".
type Slurm struct {
	node    string
	cluster string
	zone    *time.Location // of the times in lines
	run     func(context.Context) ([]byte, error)
}

// NewSlurm returns the source for a node, by the name that Slurm has for it. command is what to
// run; its first word is a program. cluster is part of the leases' names, as each cluster numbers
// its jobs anew.
func NewSlurm(node, cluster string, command []string) *Slurm {
	run := func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, slurmTimeout)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.WaitDelay = time.Second
		var out, errs limited
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			return nil, fmt.Errorf("run %s: %w: %.200s", command[0], err, errs.Bytes())
		}
		return out.Bytes(), nil
	}
	return &Slurm{node, cluster, time.Local, run}
}

// limited is a buffer that refuses to grow without bound.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > slurmBytes {
		return 0, errors.New("the answer is too long")
	}
	return l.Buffer.Write(p)
}

// Name implements Source.
func (*Slurm) Name() string { return "slurm" }

// Leases implements Source.
func (s *Slurm) Leases(ctx context.Context) ([]Lease, error) {
	text, err := s.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	var jobs []job
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		jobs, err = s.parseJSON(trimmed)
	} else {
		jobs, err = s.parseLines(string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	var leases []Lease
	for i := range jobs {
		l, ok, err := s.lease(&jobs[i])
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", jobs[i].id, err)
		}
		if ok {
			leases = append(leases, l)
		}
	}
	return leases, nil
}

// job is a job as this node sees it.
type job struct {
	id, state, account, user, name string
	comment, admin                 string
	restarts                       int
	start, end                     time.Time
	gres                           string // on this node: "gpu:h100:2(IDX:0-1)"
}

// The states in which a job has its devices, and those in which it had them.
var (
	slurmHolds = []string{"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"}
	slurmHeld  = []string{
		"COMPLETED", "COMPLETING", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL",
		"OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL",
	}
)

// lease returns a job's lease. false: it has no devices of this node, or not yet.
func (s *Slurm) lease(j *job) (Lease, bool, error) {
	devices, err := gresDevices(j.gres)
	if err != nil || j.start.IsZero() {
		return Lease{}, false, err
	}
	l := Lease{
		Key: fmt.Sprintf("%s.%d", j.id, j.restarts), Lease: "slurm/" + s.cluster + "/" + j.id,
		Tenant: j.account, Start: j.start, Resumed: j.restarts > 0, Devices: devices,
		Labels: map[string]string{"job_name": j.name, "user": j.user},
	}
	switch {
	case slices.Contains(slurmHeld, j.state):
		l.End, l.Over = j.end, len(devices) == 0 // they are forgotten when a job ends
		if j.end.IsZero() {
			return l, false, nil
		}
	case !slices.Contains(slurmHolds, j.state) || len(devices) == 0:
		return l, false, nil
	}
	l.read(j.comment, false)
	l.read(j.admin, true)
	for name, value := range l.Labels {
		if value == "" {
			delete(l.Labels, name)
		}
	}
	return l, true, l.complete()
}

// read takes in a job's comment. Only one of an administrator says who pays, and how.
func (l *Lease) read(comment string, admin bool) {
	rest, ok := strings.CutPrefix(comment, "suanpan ")
	if !ok {
		return
	}
	for _, word := range strings.Fields(rest) {
		name, value, _ := strings.Cut(word, "=")
		field := map[string]*string{
			"tenant": &l.Tenant, "purchase": &l.Purchase, "region": &l.Region,
		}[name]
		switch {
		case name == "project":
			l.Project = value
		case field == nil:
			l.Labels[name] = value
		case admin:
			*field = value
		}
	}
}

// gpuGRES is one kind of GPU in a job's GRES, migGRES the type of one that is a MIG device.
var (
	gpuGRES = regexp.MustCompile(`gpu(?::([^:(,]+))?:\d+\(IDX:([0-9,-]+)\)`)
	migGRES = regexp.MustCompile(`\d+g\.\d+gb`)
)

// gresDevices reads the GPUs of "gpu:h100:2(IDX:0-1),gpu:a100:1(IDX:5)".
func gresDevices(gres string) ([]Device, error) {
	var devices []Device
	for _, m := range gpuGRES.FindAllStringSubmatch(gres, -1) {
		if migGRES.MatchString(m[1]) {
			return nil, fmt.Errorf("GRES %.80q: of MIG devices only the number is known: begin their "+
				"leases with UUIDs, by suanpan lease start", m[0])
		}
		indexes, err := expandRanges(m[2])
		if err != nil {
			return nil, err
		}
		for _, i := range indexes {
			devices = append(devices, Device{i, whole})
		}
	}
	return devices, nil
}

// rangesMost bounds what a list of ranges may stand for.
const rangesMost = 10_000

// expandRanges returns the numbers of "1,3-5", with the zeros that they begin with.
func expandRanges(text string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.Atoi(low)
		until, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil || from < 0 || until-from >= rangesMost-len(all) {
			return nil, fmt.Errorf("ranges %.40q", text)
		}
		for n := from; n <= until; n++ {
			all = append(all, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	return all, nil
}

// hosts splits "n[01-03],m5" into the names of nodes.
var hosts = regexp.MustCompile(`([^,\[\]]+)(?:\[([0-9,-]+)\])?`)

// expandHosts returns the names of nodes in a list.
func expandHosts(list string) ([]string, error) {
	var names []string
	for _, m := range hosts.FindAllStringSubmatch(list, -1) {
		if m[2] == "" {
			names = append(names, m[1])
			continue
		}
		numbers, err := expandRanges(m[2])
		if err != nil {
			return nil, err
		}
		if len(names)+len(numbers) > rangesMost {
			return nil, fmt.Errorf("nodes %.40q: too many", list)
		}
		for _, n := range numbers {
			names = append(names, m[1]+n)
		}
	}
	return names, nil
}

// number is a number of Slurm's JSON, which says whether it is set.
type number struct {
	Set    bool  `json:"set"`
	Number int64 `json:"number"`
}

// UnmarshalJSON reads it; older versions write the number alone.
func (n *number) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		n.Set = true
		return json.Unmarshal(data, &n.Number)
	}
	type plain number
	return json.Unmarshal(data, (*plain)(n))
}

// time is the number as Unix seconds.
func (n number) time() time.Time {
	if !n.Set || n.Number == 0 {
		return time.Time{}
	}
	return time.Unix(n.Number, 0)
}

// states are the states of a job: a list, or a text in older versions.
type states []string

// UnmarshalJSON reads them.
func (s *states) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*s = states{""}
		return json.Unmarshal(data, &(*s)[0])
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// parseJSON reads `scontrol show job --json`.
func (s *Slurm) parseJSON(text []byte) ([]job, error) {
	var answer struct {
		Jobs []struct {
			ID      int64    `json:"job_id"`
			State   states   `json:"job_state"`
			Account string   `json:"account"`
			User    string   `json:"user_name"`
			Name    string   `json:"name"`
			Comment string   `json:"comment"`
			Admin   string   `json:"admin_comment"`
			Restart int      `json:"restart_cnt"`
			Start   number   `json:"start_time"`
			End     number   `json:"end_time"`
			Nodes   string   `json:"nodes"`
			GRES    []string `json:"gres_detail"` // a node each, in the order of Nodes
		} `json:"jobs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	var jobs []job
	for _, a := range answer.Jobs {
		names, err := expandHosts(a.Nodes)
		if err != nil {
			return nil, fmt.Errorf("job %d: %w", a.ID, err)
		}
		i := slices.Index(names, s.node)
		if i < 0 || len(a.State) == 0 {
			continue
		}
		gres := ""
		if i < len(a.GRES) {
			gres = a.GRES[i]
		}
		jobs = append(jobs, job{
			id: strconv.FormatInt(a.ID, 10), state: a.State[0], account: a.Account, user: a.User,
			name: a.Name, comment: a.Comment, admin: a.Admin, restarts: a.Restart,
			start: a.Start.time(), end: a.End.time(), gres: gres,
		})
	}
	return jobs, nil
}

// slurmTime is how lines tell times, in the zone of the cluster.
const slurmTime = "2006-01-02T15:04:05"

// field is a field of a line: a name and a value that ends where the next field begins.
var field = regexp.MustCompile(`(?:^|\s)([A-Z][A-Za-z0-9_:/]*)=`)

// parseLines reads `scontrol show job -d -o`: a job a line. Times are in the zone of this node.
func (s *Slurm) parseLines(text string) ([]job, error) {
	var jobs []job
	for line := range strings.Lines(text) {
		j := job{}
		here, listed := false, false
		at := field.FindAllStringSubmatchIndex(line, -1)
		for i, m := range at {
			end := len(line)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			value := strings.TrimSpace(line[m[1]:end])
			if err := s.set(&j, line[m[2]:m[3]], value, &listed, &here); err != nil {
				return nil, err
			}
		}
		if j.id != "" && here {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// set takes in a field of a line. here says whether the job is on this node, listed whether the
// fields that follow are about it.
func (s *Slurm) set(j *job, name, value string, listed, here *bool) (err error) {
	if value == "(null)" || value == "Unknown" {
		return nil
	}
	switch name {
	case "JobId":
		j.id = value
	case "JobName":
		j.name = value
	case "UserId":
		j.user, _, _ = strings.Cut(value, "(")
	case "Account":
		j.account = value
	case "Comment":
		j.comment = value
	case "JobState":
		j.state = value
	case "Restarts":
		j.restarts, err = strconv.Atoi(value)
	case "StartTime":
		j.start, err = time.ParseInLocation(slurmTime, value, s.zone)
	case "EndTime":
		j.end, err = time.ParseInLocation(slurmTime, value, s.zone)
	case "NodeList", "Nodes":
		var names []string
		names, err = expandHosts(value)
		*listed = name == "Nodes" && slices.Contains(names, s.node)
		*here = *here || slices.Contains(names, s.node)
	case "GRES":
		if *listed {
			j.gres = value
		}
	}
	if err != nil {
		return fmt.Errorf("job %s: %s: %w", j.id, name, err)
	}
	return nil
}
