package debug

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"testing"
)

// A canvas writes down what is painted on it, in whole pixels: colours are the names of the page's
// own.
const canvas = `
const out = [];
const n = Math.round;
let color = {}, path = [];
const paint = {
	scale: (x, y) => out.push("scale " + x + " " + y),
	setLineDash: (dash) => paint.dash = dash,
	beginPath: () => path = [],
	lineTo: (x, y) => path.push(n(x) + "," + n(y)),
	stroke: () => out.push("line " + paint.strokeStyle + " [" + paint.dash + "] " + path.join(" ")),
	fillRect: (x, y, w, h) => out.push("box " + paint.fillStyle + " " + (paint.globalAlpha || 1) + " " + n(x) + "," + n(y) + " " + n(w) + "x" + n(h)),
	strokeText: () => out.push("halo"),
	fillText: (text, x, y) => out.push("text " + paint.fillStyle + " " + paint.textAlign + " " + n(x) + "," + n(y) + " " + text),
};
globalThis.document = { documentElement: {}, querySelectorAll: () => [] };
globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => name.slice(2) });
globalThis.addEventListener = () => {};
globalThis.setTimeout = () => {};
globalThis.devicePixelRatio = 2;
`

// Each chart is 240 pixels high, of which 200 are painted, from 18 on down to 218.
const paintAll = `
for (const [name, wide, chart] of charts) {
	out.push("", name);
	Object.assign(paint, { globalAlpha: 1, dash: [], fillStyle: "", strokeStyle: "" });
	const c = { dataset: { chart: JSON.stringify(chart) }, getContext: () => paint, clientWidth: wide, clientHeight: 240 };
	draw(c);
	out.push("size " + c.width + "x" + c.height);
	for (const x of [wide / 2, 0]) c.onmousemove({ offsetX: x }), out.push("at " + x + ": " + JSON.stringify(c.title));
}
out.push("", "words", ...[0, 119, 150].map(ago), ...[0, 1536, 2 ** 60].map(bytes));
console.log(out.join("\n").trim());
`

// What the page's script paints for charts whose places can be worked out by hand. 4000 is the top of 4200, so that 210 bytes are 10 pixels, and 100 s of 1000
// pixels are 10 a second.
func TestScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on this machine:", err)
	}
	page, err := (&handler{}).render(busy(), "NONCE")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile(`(?s)<script nonce="NONCE">(.*)</script>`).FindSubmatch(page)[1]
	saw := [][6]float64{{100, 420, 1050, 210, 2100, 2520}, {50, 1050, 4000, 1050, 4000, 4000}, {0.5, 2100, 1050, 1050, 2100, 3150}}
	marks := []event{{100, "policy", "a"}, {50.1, "refusal", "b"}, {50, "explicit", "c"}, {49.9, "natural", "d"}, {49.8, "natural", "e"}, {49.7, "natural", "f"}, {49.6, "natural", "g"}, {49, "policy", "far"}}
	charts := [][3]any{
		{"a saw", 1000, chart{Limit: 3150, Span: 100, Step: 5, Levels: saw, Events: marks}},
		{"a limit far away", 1000, chart{Limit: 12001, Span: 100, Step: 5, Levels: saw[1:2]}},
		{"nothing", 1000, chart{Span: 1, Step: 0.01, Levels: [][6]float64{{0, 0, 0, 0, 0, 0}}}},
		{"minutes", 1000, chart{Span: 275, Step: 1, Levels: [][6]float64{{275, 4 << 30, 4 << 30, 0, 4 << 30, 4 << 30}}}},
	}
	data, err := json.Marshal(charts)
	if err != nil {
		t.Fatal(err)
	}
	program := append([]byte(canvas), script...)
	program = append(program, "\nconst charts = "+string(data)+";\n"+paintAll...)
	cmd := exec.Command(node, "-")
	cmd.Stdin = bytes.NewReader(program)
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	golden(t, "painted.txt", got)
}
