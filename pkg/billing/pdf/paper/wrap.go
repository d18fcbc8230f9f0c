package paper

import "unicode"

// Wrap breaks a text into lines of at most width: at spaces, behind hyphens, slashes and dots, and
// beside Chinese characters; in the middle of what is too long without such a place. Of more than
// most lines the last ends in dots.
func (p *Paper) Wrap(s Style, text string, width, most int) []string {
	rest := []rune(p.Clean(text))
	var lines []string
	for len(rest) > 0 && len(lines) < most {
		n := p.fitting(s, rest, width)
		end := n
		if n < len(rest) {
			end = breakBefore(rest, n)
		}
		line := rest[:end]
		rest = skipSpaces(rest[end:])
		if len(lines) == most-1 && len(rest) > 0 {
			line = p.shortened(s, line, width)
		}
		lines = append(lines, trimSpaces(line))
	}
	return lines
}

// fitting counts the runes that fit into the width, at least one.
func (p *Paper) fitting(s Style, text []rune, width int) int {
	sum := 0
	for i, r := range text {
		sum += p.TextWidth(s, string(r))
		if sum > width {
			return max(i, 1)
		}
	}
	return len(text)
}

// breakBefore returns the last place up to n where a line may end, or n.
func breakBefore(text []rune, n int) int {
	for i := n; i > 0; i-- {
		before, after := text[i-1], text[i]
		switch {
		case after == ' ' || before == ' ':
			return i
		case before == '-' || before == '/' || before == '.' || before == '_' || before == '@':
			// Not within a number: 1.5 and 2026-10-31 stay whole.
			if !unicode.IsDigit(after) {
				return i
			}
		case wide(before) && !closing(after) || wide(after) && !closing(after):
			return i
		}
	}
	return n
}

// wide reports whether a line may end beside a character.
func wide(r rune) bool {
	return unicode.Is(unicode.Han, r) || unicode.Is(unicode.Hiragana, r) ||
		unicode.Is(unicode.Katakana, r) || unicode.Is(unicode.Hangul, r) || closing(r)
}

// closing reports whether a character may not begin a line.
func closing(r rune) bool {
	switch r {
	case '。', '\uff0c', '、', '\uff1b', '\uff1a', '\uff01', '\uff1f', '\uff09', '」', '』', '”', '’', '》':
		return true
	}
	return false
}

// shortened ends a line in dots that fit.
func (p *Paper) shortened(s Style, line []rune, width int) []rune {
	const dots = "..."
	text := trimSpaces(line)
	for text != "" && p.TextWidth(s, text+dots) > width {
		text = trimSpaces([]rune(text)[:len([]rune(text))-1])
	}
	return []rune(text + dots)
}

// skipSpaces leaves out the spaces at the front.
func skipSpaces(text []rune) []rune {
	for len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	return text
}

// trimSpaces leaves out the spaces at the end.
func trimSpaces(text []rune) string {
	for len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return string(text)
}
