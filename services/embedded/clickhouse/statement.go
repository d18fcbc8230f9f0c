package clickhouse

import (
	"bytes"
	"strings"
)

// statement is what the front needs to know of a query's text. The engine parses it again; a
// wrong guess here costs streaming, never correctness.
type statement struct {
	keyword string // the first word, in upper case
	format  string // the name after FORMAT, "" without one
	head    []byte // an INSERT's text before FORMAT
	data    int    // where an INSERT's rows begin in the text, -1 where it has none outside
	several bool   // more than one statement
	session bool   // it changes the session: USE, SET, temporary tables
}

// scanner walks over the tokens of a query as ClickHouse's lexer does.
type scanner struct {
	text []byte
	at   int // where the next token is looked for
}

// token kinds.
const (
	tokenEnd = iota
	tokenWord
	tokenQuoted
	tokenOther
)

// next returns the next token's kind and bounds, past white space and comments.
func (s *scanner) next() (kind, start, end int) {
	s.skipBlank()
	start = s.at
	if start >= len(s.text) {
		return tokenEnd, start, start
	}
	switch c := s.text[start]; {
	case isWordByte(c):
		for s.at < len(s.text) && isWordByte(s.text[s.at]) {
			s.at++
		}
		return tokenWord, start, s.at
	case c == '\'' || c == '"' || c == '`':
		s.skipQuoted(c)
		return tokenQuoted, start, s.at
	case c == '$':
		if s.skipHeredoc() {
			return tokenQuoted, start, s.at
		}
	}
	s.at = start + 1
	return tokenOther, start, s.at
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
		c >= 0x80
}

func (s *scanner) skipBlank() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch c := rest[0]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			s.at++
		case bytes.HasPrefix(rest, []byte("--")), bytes.HasPrefix(rest, []byte("# ")),
			bytes.HasPrefix(rest, []byte("#!")):
			s.skipPast("\n", 2)
		case bytes.HasPrefix(rest, []byte("/*")):
			s.skipPast("*/", 2)
		default:
			return
		}
	}
}

func (s *scanner) skipPast(end string, from int) {
	if i := bytes.Index(s.text[s.at+from:], []byte(end)); i >= 0 {
		s.at += from + i + len(end)
		return
	}
	s.at = len(s.text)
}

// skipQuoted passes a literal or a quoted name; a doubled or escaped quote does not end it.
func (s *scanner) skipQuoted(quote byte) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case quote:
			if s.at+1 < len(s.text) && s.text[s.at+1] == quote {
				s.at++
				continue
			}
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// skipHeredoc passes $tag$ ... $tag$.
func (s *scanner) skipHeredoc() bool {
	end := s.at + 1
	for end < len(s.text) && isWordByte(s.text[end]) {
		end++
	}
	if end >= len(s.text) || s.text[end] != '$' {
		return false
	}
	s.skipPast(string(s.text[s.at:end+1]), end+1-s.at)
	return true
}

// parseStatement reads a query's text, or its beginning: whole says which. Of an INSERT with rows
// in a format it reads no further than where the rows begin.
func parseStatement(text []byte, whole bool) statement {
	p := statementParser{scanner: scanner{text: text}, whole: whole, st: statement{data: -1}}
	for p.step() {
	}
	return p.st
}

type statementParser struct {
	scanner
	whole bool
	st    statement
	words int
	depth int
	ended bool // a semicolon was seen
	name  bool // the next token belongs to an INSERT's table name
	rows  bool // the text is an INSERT that neither selects nor has VALUES
}

// step takes one token and tells whether to go on.
func (p *statementParser) step() bool {
	kind, start, end := p.next()
	if kind == tokenEnd {
		return false
	}
	if p.ended {
		p.st.several = true
		return false
	}
	switch kind {
	case tokenOther:
		p.punctuation(p.text[start])
	case tokenQuoted:
		p.name = p.name && p.dotFollows()
	case tokenWord:
		if p.depth == 0 {
			return p.word(strings.ToUpper(string(p.text[start:end])), start)
		}
	}
	return true
}

func (p *statementParser) dotFollows() bool { return p.at < len(p.text) && p.text[p.at] == '.' }

func (p *statementParser) punctuation(c byte) {
	switch c {
	case '(', '[', '{':
		p.depth++
	case ')', ']', '}':
		p.depth--
	case ';':
		p.ended = true
	}
	p.name = p.name && c == '.'
}

// word takes a bare word outside of parentheses.
func (p *statementParser) word(word string, start int) bool {
	p.words++
	switch {
	case p.words == 1:
		p.st.keyword = word
		p.st.session = word == "USE" || word == "SET"
		p.rows = word == "INSERT"
	case p.words == 2 && word == "INTO":
		p.name = true
	case p.name:
		p.name = word == "TABLE" || word == "FUNCTION" || p.dotFollows()
	case word == "SELECT" || word == "WITH" || word == "FROM" || word == "VALUES":
		p.rows = false
	case word == "TEMPORARY" && p.words <= 4:
		p.st.session = true
	case word == "FORMAT":
		return p.takeFormat(start)
	}
	return true
}

// takeFormat reads the format's name; in an INSERT the rows begin after it.
func (p *statementParser) takeFormat(head int) bool {
	after := p.at
	kind, start, end := p.next()
	if kind != tokenWord {
		p.at = after // a column or a function of that name
		return true
	}
	p.st.format = string(p.text[start:end])
	if !p.rows || strings.EqualFold(p.st.format, "VALUES") {
		return true
	}
	// As ClickHouse does: blanks after the name, and one line end, are not data.
	for end < len(p.text) && (p.text[end] == ' ' || p.text[end] == '\t' || p.text[end] == '\f') {
		end++
	}
	if end < len(p.text) && p.text[end] == '\r' {
		end++
	}
	if end < len(p.text) && p.text[end] == '\n' {
		end++
	} else if end == len(p.text) && !p.whole {
		return false // the line end may be in what was not read yet
	}
	p.st.head, p.st.data = p.text[:head], end
	return false
}

// streamable holds the formats of which two documents in a row are one.
var streamable = map[string]bool{
	"NATIVE": true, "TABSEPARATED": true, "TSV": true, "TABSEPARATEDRAW": true, "TSVRAW": true,
	"RAW": true, "CSV": true, "JSONEACHROW": true, "JSONLINES": true, "NDJSON": true,
	"JSONSTRINGSEACHROW": true, "JSONCOMPACTEACHROW": true, "JSONCOMPACTSTRINGSEACHROW": true,
	"ROWBINARY": true, "LINEASSTRING": true,
}

// streams tells whether the answer can be sent block by block.
func (st statement) streams(format string) bool {
	switch st.keyword {
	case "SELECT", "WITH", "FROM":
		return streamable[strings.ToUpper(format)]
	}
	return false
}
