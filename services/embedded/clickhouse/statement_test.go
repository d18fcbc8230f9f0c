package clickhouse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatement_findsWhereRowsBegin(t *testing.T) {
	f := func(text, head, format, rows string) {
		t.Helper()
		st := parseStatement([]byte(text), true)
		if st.data < 0 {
			t.Fatalf("%q: no rows found", text)
		}
		got := []string{string(st.head), st.format, text[st.data:]}
		if diff := cmp.Diff([]string{head, format, rows}, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	f("INSERT INTO t FORMAT Native", "INSERT INTO t ", "Native", "")
	f("INSERT INTO t FORMAT Native\n\nx", "INSERT INTO t ", "Native", "\nx") // one line end only
	f("insert into t format CSV \t\r\n 1", "insert into t ", "CSV", " 1")
	f("INSERT INTO t FORMAT JSONEachRow{\"a\":1}", "INSERT INTO t ", "JSONEachRow", "{\"a\":1}")
	f("/* FORMAT x; */ INSERT INTO db.t (a, `format`) SETTINGS x = 'FORMAT' FORMAT TSV\n1",
		"/* FORMAT x; */ INSERT INTO db.t (a, `format`) SETTINGS x = 'FORMAT' ", "TSV", "1")
	f("INSERT INTO format FORMAT TSV\n1", "INSERT INTO format ", "TSV", "1")
	f("INSERT INTO `values`.format (values) FORMAT TSV\n1",
		"INSERT INTO `values`.format (values) ", "TSV", "1")
	f("INSERT INTO TABLE t -- FORMAT A\nFORMAT TSV\n;", "INSERT INTO TABLE t -- FORMAT A\n",
		"TSV", ";")
	f("INSERT INTO FUNCTION file('x', 'TSV') FORMAT TSV 1",
		"INSERT INTO FUNCTION file('x', 'TSV') ", "TSV", "1")
}

func TestParseStatement_leavesOtherStatementsWhole(t *testing.T) {
	f := func(text, keyword, format string) {
		t.Helper()
		st := parseStatement([]byte(text), true)
		if st.data >= 0 || st.several || st.keyword != keyword || st.format != format {
			t.Errorf("%q: %+v", text, st)
		}
	}
	f("SELECT 1", "SELECT", "")
	f("select 1 format JSON;", "SELECT", "JSON")
	f("SELECT format('{}', 1), format FROM t FORMAT CSV SETTINGS max_threads = 1", "SELECT", "CSV")
	f("(SELECT 1 FORMAT JSON)", "", "")
	f("INSERT INTO t VALUES ('a;b', 1);", "INSERT", "")
	f("INSERT INTO t FORMAT Values (1)", "INSERT", "Values")
	f("INSERT INTO t SELECT * FROM u", "INSERT", "")
	f("SELECT $x$ ; FORMAT $x$, 'it''s \\' ; '", "SELECT", "")
	f("", "", "")
}

func TestParseStatement_seesSeveralStatementsAndSessions(t *testing.T) {
	f := func(text string, several, session bool) {
		t.Helper()
		st := parseStatement([]byte(text), true)
		if st.several != several || st.session != session {
			t.Errorf("%q: %+v", text, st)
		}
	}
	f("SELECT 1; SELECT 2", true, false)
	f("SELECT ';'; -- done\n", false, false)
	f("INSERT INTO t VALUES (1); DROP TABLE t", true, false)
	f("SET max_threads = 1", false, true)
	f("USE db", false, true)
	f("CREATE TEMPORARY TABLE t (a Int8)", false, true)
	f("CREATE OR REPLACE TEMPORARY TABLE t (a Int8)", false, true)
	f("CREATE TABLE t (temporary Int8)", false, false)
}

// A head that is cut anywhere must not be mistaken for a whole one.
func TestParseStatement_cutHeadsFindNoRows(t *testing.T) {
	text := "INSERT INTO db.t (a, b) FORMAT JSONEachRow"
	for n := range len(text) + 1 {
		if st := parseStatement([]byte(text[:n]), false); st.data >= 0 {
			t.Errorf("%q: rows at %d", text[:n], st.data)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "INSERT INTO t FORMAT TSV\n1", "INSERT INTO `a\\`b`.c (x) FORMAT Native",
		"SELECT $a$ $a$; SELECT", "/* ", "'", "--", "INSERT INTO t FORMAT", "(((", "$", "\\",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := parseStatement(text, true)
		if whole.data > len(text) || whole.data >= 0 && len(whole.head) > whole.data {
			t.Fatalf("rows at %d of %d", whole.data, len(text))
		}
		if strings.Contains(whole.format, " ") {
			t.Fatalf("format %q", whole.format)
		}
		// What a beginning of the text shows must stand when the rest is known.
		if part := parseStatement(text[:len(text)/2], false); part.data >= 0 &&
			part.data != whole.data {
			t.Fatalf("rows at %d in the beginning, at %d in all", part.data, whole.data)
		}
	})
}
