// Package focus checks exports for finance systems with the tools of those who define FOCUS, which
// pip fetches: focus-data-toolkit for version 1.4, and focus-validator, which needs Python 3.12,
// for version 1.2. What they are given is real: usage of two months with late events, voids, a tax
// that prices include, promotional money and credit notes, closed and issued as the biller does.
package focus
