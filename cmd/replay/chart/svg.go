//go:build !js

package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"

	"github.com/eagergc/eagergc/trace"
)

// writeSVG writes what was drawn as a file: dark where the reader's page is dark.
func (c *Chart) writeSVG(w io.Writer, canvas io.WriterTo) error {
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	text := strings.ReplaceAll(b.String(), "font-family:Liberation Sans;font-variant:normal;", "font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;")
	head := fmt.Sprintf("<style>@media (prefers-color-scheme: dark) {\n%s}</style>\n<title>%s</title>\n", DarkStyle("svg"), escape(trace.Plain(c.title)))
	_, err := io.WriteString(w, strings.Replace(text, ">\n<g ", ">\n"+head+"<g ", 1))
	return err
}

var (
	svgHead  = regexp.MustCompile(`(?s)^.*?<svg[^>]*?viewBox="([^"]*)"[^>]*>\n<style>.*?</style>\n`)
	fontRest = strings.NewReplacer("font-weight:normal;", "", "font-style:normal;", "")
)

// Inline returns the chart as an SVG element for a page, as wide as its place.
// The page brings [DarkStyle] in its own style sheet.
func (c *Chart) Inline() (string, error) {
	var b bytes.Buffer
	if err := c.Write(&b, "svg"); err != nil {
		return "", err
	}
	return fontRest.Replace(svgHead.ReplaceAllString(b.String(), `<svg viewBox="$1" role="img">`)), nil
}

// DarkStyle returns the CSS rules that turn the charts within a selector dark.
func DarkStyle(selector string) string {
	var b strings.Builder
	rule := func(light, dark color.RGBA) {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "%s [style*=\"%s:%s\"] { %[2]s: %[4]s !important }\n", selector, property, hex(light), hex(dark))
		}
	}
	// What has no style of its own is black.
	fmt.Fprintf(&b, "%[1]s text, %[1]s path:not([style*=\"fill:\"]) { fill: %[2]s }\n", selector, hex(rgb(0xE8E8E6)))
	rule(black, rgb(0xE8E8E6))
	rule(white, rgb(0x161719))
	rule(faint, rgb(0x34373C))
	palette := NewPalette(ownerNames())
	for _, name := range ownerNames() {
		o := palette.of(name)
		if o.Light != black {
			rule(o.Light, o.Dark)
		}
	}
	return b.String()
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
