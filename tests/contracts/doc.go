// Package contracts holds the JSON Schemas of package schemas to the parsers that they describe:
// each example is judged by both, and they must agree. It has tests only, as schemas itself may not
// know the packages that follow from it.
package contracts
