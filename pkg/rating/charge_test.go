package rating

import "testing"

// FuzzParseCharge: no panic; what is accepted prints to what was read, but for the zeros before a
// number.
func FuzzParseCharge(f *testing.F) {
	f.Add("public|0||0|gpu||on_demand|standard||2026-01|0")
	f.Add("public|1774998630|deal|1|gpu|r1|spot|night|1.25|2026-12|1774998000")
	f.Add("a|b|c")
	f.Add("||||||||||")
	f.Fuzz(func(t *testing.T, key string) {
		c, err := ParseCharge("acme", key)
		if err != nil {
			return
		}
		again, err := ParseCharge("acme", c.Key())
		if err != nil || again != c {
			t.Fatalf("%q parses to %+v, which parses to %+v, %v", key, c, again, err)
		}
	})
}
