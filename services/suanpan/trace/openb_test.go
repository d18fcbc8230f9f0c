package trace_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/services/suanpan/trace"
)

const header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase," +
	"creation_time,deletion_time,scheduled_time\n"

func TestReadOpenB_namesLineAndColumn(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := trace.ReadOpenB(strings.NewReader(text), start)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, not one with %q", text, err, want)
		}
	}
	const good = "a,1,1,1,1,,LS,Running,0,9,1\n"
	f("", "empty")
	f("name,cpu_milli\n", "wrong number of fields")
	f(strings.Replace(header, "num_gpu", "gpus", 1)+good, "line 1: the columns are not")
	f(header+good+"b,1,1,1,1,,LS,Running,0,9\n", "line 3: wrong number of fields")
	f(header+good+"b,1,1,1,\"1,,LS,Running,0,9,1\n", `extraneous or missing "`)
	f(header+good+"a,1,1,1,1,,LS,Running,0,9,1\n", `line 3, column name is "a", like that of line 2`)
	f(header+",1,1,1,1,,LS,Running,0,9,1\n", "line 2, column name is empty")
	f(header+strings.Repeat("n", 257)+",1,1,1,1,,LS,Running,0,9,1\n",
		"column name is longer than 256")
	f(header+"\xff,1,1,1,1,,LS,Running,0,9,1\n", "column name is not UTF-8")
	f(header+"a,1.5,1,1,1,,LS,Running,0,9,1\n",
		`line 2, column cpu_milli is "1.5", not a whole number`)
	f(header+"a,1,-1,1,1,,LS,Running,0,9,1\n", "line 2, column memory_mib")
	f(header+"a,1,1,1025,1,,LS,Running,0,9,1\n", "line 2, column num_gpu")
	f(header+"a,1,1,1,99999999999,,LS,Running,0,9,1\n", "line 2, column gpu_milli")
	f(header+"a,1,1,1,1,,Best,Running,0,9,1\n", `line 2, column qos is "Best", none of LS`)
	f(header+"a,1,1,1,1,,LS,Running,,9,1\n", "line 2, column creation_time")
	f(header+good+"b,1,1,1,1,,LS,Running,0,,1\n", "line 3, column deletion_time")
	f(header+"a,1,1,1,1,,LS,Running,0,9,now\n", "line 2, column scheduled_time")
	f(header+"\"a\nb\",1,1,1,1,,LS,Running,0,9,1\nc,x,1,1,1,,LS,Running,0,9,1\n",
		"line 4, column cpu_milli")
}

// The real trace is not shipped. Its figures are those that it is known for.
func TestReadOpenB_theRealTrace(t *testing.T) {
	if _, err := os.Stat(openb); err != nil {
		t.Skip("optional: there is no ../shared/data/alibaba-gpu-v2023 beside the repository: ", err)
	}
	r := replayOf(t, readOpenB(t, openb), time.Minute)
	if r.Sessions() != 6203 || r.Total() != 3_192_443 {
		t.Errorf("%d sessions and %d windows, not 6203 and 3192443", r.Sessions(), r.Total())
	}
	var windows int64
	last := map[*trace.Session]int64{}
	var hours int64 // rows: one for each session, hour and SKU
	for w := range r.Windows() {
		windows++
		for hour := w.Start / 3600; hour <= (w.End-1)/3600; hour++ {
			if seen, ok := last[w.Session]; !ok || hour > seen {
				last[w.Session] = hour
				hours += int64(len(w.Session.Held))
			}
		}
	}
	if windows != r.Total() || hours != 178_084 {
		t.Errorf("%d windows and %d hour rows, not %d and %d", windows, hours, r.Total(), 178_084)
	}
}

// The generator's tables were drawn from the real trace: its fleets must be like it.
func TestGenerate_isLikeTheRealTrace(t *testing.T) {
	fleet := trace.Fleet{Seed: 1, Start: start, Days: 149, Sessions: 50_000, Tenants: 20}
	sessions := generate(t, fleet)
	f := func(what string, want float64, is func(*trace.Session) bool) {
		t.Helper()
		n := 0
		for i := range sessions {
			if is(&sessions[i]) {
				n++
			}
		}
		share := float64(n) / float64(len(sessions))
		if math.Abs(share-want) > 0.1*want+0.002 {
			t.Errorf("%s: a share of %.4f, not about %.4f", what, share, want)
		}
	}
	gpu := func(s *trace.Session) int64 {
		for _, a := range s.Held {
			if a.SKU == "gpu.openb" {
				return a.Milli
			}
		}
		return 0
	}
	f("a part of a GPU", 0.4148, func(s *trace.Session) bool { return gpu(s) < 1000 })
	f("several GPUs", 0.0119, func(s *trace.Session) bool { return gpu(s) > 1000 })
	f("spot", 0.4046, func(s *trace.Session) bool { return s.Purchase == "spot" })
	f("reserved", 0.0010, func(s *trace.Session) bool { return s.Purchase == "reserved" })
	f("over 3 minutes", 0.75, func(s *trace.Session) bool { return s.End-s.Start > 183 })
	f("over 11 minutes", 0.50, func(s *trace.Session) bool { return s.End-s.Start > 655 })
	f("over 2 hours", 0.10, func(s *trace.Session) bool { return s.End-s.Start > 7389 })
	f("over 32,330 s", 0.03, func(s *trace.Session) bool { return s.End-s.Start > 32_330 })
}

func TestGenerate_isTheSameForASeed(t *testing.T) {
	fleet := trace.Fleet{Seed: 5, Start: start, Days: 1, Sessions: 40, Tenants: 4}
	names := func(f trace.Fleet) (all string) {
		for _, s := range generate(t, f) {
			all += s.Name + " "
		}
		return all
	}
	golden(t, "testdata/fleet.jsonl", lines(replayOf(t, generate(t, fleet), time.Hour).Windows()))
	for _, other := range []trace.Fleet{
		{Seed: 6, Start: start, Days: 1, Sessions: 40, Tenants: 4},
		{Seed: 5, Start: start + 1, Days: 1, Sessions: 40, Tenants: 4},
		{Seed: 5, Start: start, Days: 2, Sessions: 40, Tenants: 4},
		{Seed: 5, Start: start, Days: 1, Sessions: 40, Tenants: 5},
	} {
		if names(other) == names(fleet) {
			t.Errorf("fleets %+v and %+v have sessions of the same names", fleet, other)
		}
	}
}

func TestGenerate_rejectsWhatIsOutOfBounds(t *testing.T) {
	for _, f := range []trace.Fleet{
		{Days: 0, Tenants: 1},
		{Days: trace.MaxDays + 1, Sessions: 1, Tenants: 1},
		{Days: 1, Tenants: 0},
		{Days: 1, Tenants: trace.MaxTenants + 1},
		{Days: 1, Sessions: -1, Tenants: 1},
		{Days: 1, Sessions: trace.MaxSessions + 1, Tenants: 1},
	} {
		if _, err := f.Generate(); err == nil {
			t.Errorf("fleet %+v is accepted", f)
		}
	}
}

func FuzzReadOpenB(f *testing.F) {
	data, err := os.ReadFile("testdata/openb.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(header + "a,1,1,1,1,,LS,Running,0,9,1\n")
	f.Add(header + "\"a\n\",0,1000000000000,1024,976562500,,BE,,0,1000000000000,0\n")
	f.Fuzz(func(t *testing.T, text string) {
		sessions, err := trace.ReadOpenB(strings.NewReader(text), start)
		if err != nil {
			return
		}
		r, err := trace.New(trace.OpenBSource, sessions, 24*time.Hour)
		if err != nil || r.Total() > 1000 {
			return
		}
		parse(t, r.Windows()) // whatever was read makes events that are accepted
	})
}
