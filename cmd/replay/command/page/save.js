// What can be taken from the page: a link, a picture, the figures, the Go lines.
const download = (name, type, data) => {
  const a = html("a", { href: URL.createObjectURL(new Blob([data], { type })), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
};

// pictured draws all charts that are seen into one picture.
const pictured = async (live) => {
  const shots = [...live.section.querySelectorAll(".uplot canvas")].filter((c) => c.offsetParent), px = devicePixelRatio, pad = 12 * px;
  const text = [live.recording.info.name + ": " + live.picture.verdict, live.picture.beside];
  const wide = Math.max(...shots.map((c) => c.width)) + 2 * pad, canvas = html("canvas", { width: wide, height: shots.reduce((h, c) => h + c.height + 3 * pad, 6 * pad) });
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = css("--bg");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = css("--fg");
  ctx.font = 13 * px + "px system-ui, sans-serif";
  text.forEach((line, i) => ctx.fillText(line, pad, (2 + 1.7 * i) * pad, wide - 2 * pad));
  let y = 5 * pad;
  for (const c of shots) {
    ctx.fillText(c.closest("[aria-label]")?.getAttribute("aria-label") ?? "", pad, y + pad, wide - 2 * pad);
    ctx.drawImage(c, pad, y + 1.5 * pad);
    y += c.height + 3 * pad;
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
};

// table of results as CSV, the fields of replay compare --format csv.
const csv = (results) => {
  const cell = (v) => /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v;
  return [Object.keys(results[0]), ...results.map((r) => Object.values(r))].map((row) => row.map(cell).join(",")).join("\n") + "\n";
};

const goLines = (live) => {
  const limit = Math.floor(parseFloat(live.state.limit) * live.recording.info.peak_reachable_bytes);
  const policy = live.picture?.table.slice(1).map((row) => row[0]).find((p) => !p.startsWith("optimum") && !p.startsWith("oracle")) ?? "pacer";
  return `collector, err := gc.New(gc.Config{Policy: policy.MustParse(${JSON.stringify(policy)}).New(), Limit: ${limit}}) // ${units.GiB(limit / 2 ** 30)}\nEAGERGC_POLICY=${policy}  # the same policy without a change in the code`;
};

// copy puts text where it can be pasted, and shows it: a browser may forbid the first.
const copy = async (text, show) => {
  let done = "To copy:";
  try { await navigator.clipboard.writeText(text); done = "Copied:"; } catch { /* it is shown */ }
  show(done + "\n" + text);
};

const saving = (live, form, lines) => {
  const el = form.elements, stem = () => live.recording.info.name;
  el.link.onclick = () => copy(location.href.split("#")[0] + "#" + linkOf(live), lines);
  el.picture.onclick = async () => download(stem() + ".png", "image/png", await pictured(live));
  el.csv.onclick = () => live.swept && download(stem() + ".csv", "text/csv", csv(live.swept));
  el.go.onclick = () => copy(goLines(live), lines);
};

// A link holds the settings, and of a sample the recording too.
const linkOf = ({ state, recording, seen }) => {
  const p = new URLSearchParams({ limit: state.limit, cycle: state.cycle, policies: state.policies.join(";") });
  if (recording.sample) p.set("sample", recording.sample);
  if (state.price) p.set("price", state.price);
  const { from, to, zoomed, pair, cycle, chart } = seen();
  if (zoomed) p.set("time", from.toPrecision(6) + "," + to.toPrecision(6));
  if (pair) p.set("pair", pair.join(";"));
  if (cycle) p.set("why", cycle.join());
  if (chart) p.set("chart", chart);
  return p.toString();
};
const linked = () => {
  const p = new URLSearchParams(location.hash.slice(1)), to = {};
  if (/^\d+(\.\d+)?x$/.test(p.get("limit") ?? "")) to.limit = p.get("limit");
  if (/^\d+(\.\d+)?(s|ms|us)$/.test(p.get("cycle") ?? "")) to.cycle = p.get("cycle");
  if (p.get("price") > 0) to.price = +p.get("price");
  if (p.get("policies")) to.policies = p.get("policies").split(";");
  const seen = { pair: p.get("pair")?.split(";"), chart: p.get("chart") }, pairOf = (name) => p.get(name)?.split(",").map(Number);
  [seen.from, seen.to] = pairOf("time") ?? [];
  seen.cycle = pairOf("why");
  return { sample: p.get("sample"), state: to, seen };
};
