// Package law holds rating to its second opinion: random catalogs and events, billed by the product
// and by the independent auditor, must come to the same summary and the same rejections.
package law
