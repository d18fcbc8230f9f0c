// Package html renders documents as web pages: one file each, which loads nothing, runs nothing
// and says so in its security policy, can be read aloud and prints on A4. It is pure.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of the page and its style
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"

	"github.com/suanpan/suanpan/pkg/billing"
	"github.com/suanpan/suanpan/pkg/billing/view"
)

//go:embed page.html
var source string

//go:embed page.css
var style string

// page is the template, which is read once.
var page = template.Must(template.New("page").Parse(source))

// pngSignature is how every PNG begins.
const pngSignature = "\x89PNG\r\n\x1a\n"

// content is what the template shows.
type content struct {
	*view.Page
	Parties []view.Party
	Policy  string
	Style   template.CSS
	Picture template.URL
}

// Render returns the document as a page of HTML. It is safe for concurrent use.
func Render(d *billing.Document) ([]byte, error) {
	v, err := view.New(d)
	if err != nil {
		return nil, fmt.Errorf("render HTML: %w", err)
	}
	c := content{Page: v, Style: template.CSS(style), Policy: policy()}
	for _, party := range []view.Party{v.Seller, v.Buyer} {
		if party.Heading != "" {
			c.Parties = append(c.Parties, party)
		}
	}
	if c.Picture, err = picture(v.Logo); err != nil {
		return nil, fmt.Errorf("render HTML: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, c); err != nil {
		return nil, fmt.Errorf("render HTML: %w", err)
	}
	return out.Bytes(), nil
}

// policy allows the page's own style and pictures within it, and nothing else.
func policy() string {
	hash := sha256.Sum256([]byte(style))
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; img-src data:; "+
		"base-uri 'none'; form-action 'none'", base64.StdEncoding.EncodeToString(hash[:]))
}

// picture returns a logo as an address that holds it, "" without one.
func picture(logo string) (template.URL, error) {
	if logo == "" {
		return "", nil
	}
	data, err := base64.StdEncoding.DecodeString(logo)
	if err != nil {
		return "", fmt.Errorf("read logo: %w", err)
	}
	if !bytes.HasPrefix(data, []byte(pngSignature)) {
		return "", errors.New("read logo: it is no PNG")
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(data)), nil
}
