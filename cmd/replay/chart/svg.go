//go:build !js

package chart

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"strings"

	"github.com/eagergc/eagergc/trace/formats/recording"
)

// writeSVG writes a drawn canvas as a file with a style for dark pages.
func (c *Chart) writeSVG(w io.Writer, canvas io.WriterTo) error {
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	text := strings.ReplaceAll(b.String(), "font-family:Liberation Sans;font-variant:normal;", "font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;")
	head := fmt.Sprintf("<style>@media (prefers-color-scheme: dark) {\n%s}</style>\n<title>%s</title>\n", darkStyle(), html.EscapeString(recording.Plain(c.title)))
	_, err := io.WriteString(w, strings.Replace(text, ">\n<g ", ">\n"+head+"<g ", 1))
	return err
}

// darkStyle returns the CSS rules for dark pages.
func darkStyle() string {
	var b strings.Builder
	rule := func(light, dark color.RGBA) {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, "svg [style*=\"%s:%s\"] { %[1]s: %[3]s !important }\n", property, hex(light), hex(dark))
		}
	}
	// An element without a style is black.
	fmt.Fprintf(&b, "svg text, svg path:not([style*=\"fill:\"]) { fill: %s }\n", hex(rgb(0xE8E8E6)))
	rule(black, rgb(0xE8E8E6))
	rule(white, rgb(0x161719))
	rule(faint, rgb(0x34373C))
	palette := NewPalette(styledNames())
	for _, name := range styledNames() {
		o := palette.of(name)
		if o.Light != black {
			rule(o.Light, o.Dark)
		}
	}
	return b.String()
}
