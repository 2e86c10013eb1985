"""Draws memory.svg from the curves: buffers of 64 MiB alive over time."""
W, H, L, T, SPAN, TOP = 740, 300, 52, 24, 0.8, 40  # TOP: buffers

def x(t): return L + (W - L - 170) * t / SPAN
def y(n): return T + (H - T - 36) * (1 - n / TOP)

def points(name):
    rows = [(float(a), int(b)) for a, b in (line.split() for line in open(f"curve-{name}-0.txt"))]
    return [r for r in rows if r[0] <= SPAN]

def steps(rows, until):
    path = f"M{x(0):.1f} {y(rows[0][1]):.1f}"
    for t, n in rows[1:]:
        path += f"H{x(t):.1f}V{y(n):.1f}"
    return path + f"H{x(until):.1f}"

out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {H}" font-family="sans-serif" font-size="12">',
       f'<title>Device memory of an array program of GoMLX over time</title>'
       '<style>@media (prefers-color-scheme: dark) { rect { fill: #161719 } text:not([fill]) { fill: #E8E8E6 } path[stroke="#ddd"] { stroke: #34373C } path[stroke="#555"] { stroke: #B8B8B6 } }</style>'
       f'<rect width="{W}" height="{H}" fill="white"/>']
for gib in (0, 0.5, 1, 1.5, 2):
    n = gib * 16
    out.append(f'<path d="M{L} {y(n):.1f}H{x(SPAN):.1f}" stroke="#ddd"/><text x="{L-6}" y="{y(n)+4:.1f}" text-anchor="end">{gib:g} GiB</text>')
for t in (0, 0.2, 0.4, 0.6, 0.8):
    out.append(f'<text x="{x(t):.1f}" y="{H-14}" text-anchor="middle">{t:g} s</text>')
out.append(f'<path d="M{L} {y(28):.1f}H{x(SPAN):.1f}" stroke="#555" stroke-dasharray="5 4"/><text x="{x(SPAN)+6:.1f}" y="{y(28)+4:.1f}">limit</text>')
asis = points("asis")
for name, colour, label, at in (("tick100ms", "#d9a441", "runtime.GC each 100 ms", 34.2), ("hand", "#888", "finalized by hand", 5), ("default", "#1f6fb4", "eager: nobody finalizes", 23)):
    out.append(f'<path d="{steps(points(name), SPAN)}" fill="none" stroke="{colour}" stroke-width="1.5"/><text x="{x(SPAN)+6:.1f}" y="{y(at):.1f}" fill="{colour}">{label}</text>')
end = asis[-1][0]
out.append(f'<path d="{steps(asis, end)}" fill="none" stroke="#c0392b" stroke-width="2.5"/>'
           f'<circle cx="{x(end):.1f}" cy="{y(asis[-1][1]):.1f}" r="4" fill="#c0392b"/><text x="{x(end)+8:.1f}" y="{y(asis[-1][1])-6:.1f}" fill="#c0392b">as it is: out of memory, after a wait of 10 s</text></svg>')
open("memory.svg", "w").write("\n".join(out) + "\n")
