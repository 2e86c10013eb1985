// Memory over time: two policies side by side on one time axis, each with its
// cycles, which can be asked why they ran.
const floats = (text) => new Float32Array(decoded(text).buffer);

// steps draws levels, which hold until the next. If cycles merge, live is a band from the
// least to the greatest value of each column with its mean, and reachable is its mean.
const stepped = uPlot.paths.stepped({ align: 1 });
const straight = uPlot.paths.linear();
const steps = (side) => (u, s, from, to) => (many(u, side) ? dense : to - from > 2 * u.bbox.width ? straight : stepped)(u, s, from, to);

// many reports whether the visible cycles merge.
const many = (u, side) => {
  const { min, max } = u.scales.x;
  return side.run.cycles.start.filter((t) => t >= min && t <= max).length > u.bbox.width / devicePixelRatio / 6;
};
const dense = (u, s, from, to) => {
  const { left, width } = u.bbox, { min, max } = u.scales.x, [t, v] = [u.data[0], u.data[s]];
  const n = Math.max(1, Math.floor(width / devicePixelRatio)), column = (time) => Math.min(n - 1, Math.max(0, Math.floor((time - min) / (max - min) * n)));
  const low = new Float64Array(n).fill(Infinity), high = new Float64Array(n).fill(-Infinity), sum = new Float64Array(n), time = new Float64Array(n);
  for (let i = from; i <= to; i++) {
    const end = t[i + 1] ?? t[i];
    for (let k = column(t[i]); k <= column(end); k++) {
      const held = Math.max(1e-12, Math.min(end, min + (k + 1) / n * (max - min)) - Math.max(t[i], min + k / n * (max - min)));
      low[k] = Math.min(low[k], v[i]);
      high[k] = Math.max(high[k], v[i]);
      sum[k] += v[i] * held;
      time[k] += held;
    }
  }
  const fill = new Path2D(), stroke = new Path2D(), at = [...time.keys()].filter((k) => time[k] > 0);
  const x = (k) => left + (k + .5) / n * width, y = (value) => u.valToPos(value, "y", true);
  for (const k of at) {
    stroke.lineTo(x(k), y(sum[k] / time[k]));
    fill.lineTo(x(k), y(s === 1 ? high[k] : sum[k] / time[k]));
  }
  for (const k of at.reverse()) fill.lineTo(x(k), y(s === 1 ? low[k] : 0));
  return { stroke, fill, clip: null, band: null, gaps: null, flags: 1 };
};

// line is the upper edge of the live bytes.
const line = (p) => Object.assign(html("span"), { style: `border-top: 2px solid ${colour(p)}; width: 1.2rem` });

// limit draws the limit. As a series of uPlot, with a dash for each of its points, it
// took nine tenths of the time of a frame.
const limit = (r) => (u) => {
  const ctx = u.ctx, px = devicePixelRatio, y = Math.round(u.valToPos(r.limit, "y", true));
  ctx.save();
  ctx.beginPath();
  ctx.setLineDash([4 * px, 3 * px]);
  ctx.moveTo(u.bbox.left, y);
  ctx.lineTo(u.bbox.left + u.bbox.width, y);
  ctx.strokeStyle = css("--fg");
  ctx.lineWidth = px;
  ctx.stroke();
  ctx.restore();
};

// marks draws the cycles along the upper edge: a line for one of the policy, a triangle for
// one of a refusal; the chosen one is larger. If they would merge, a strip for each kind
// shows the number in each column.
const marks = (side) => (u) => {
  const ctx = u.ctx, px = devicePixelRatio, top = u.bbox.top, c = side.run.cycles, seen = [], merged = many(u, side), columns = [new Map(), new Map()];
  for (let i = 0; i < c.start.length; i++) if (c.start[i] >= u.scales.x.min && c.start[i] <= u.scales.x.max) seen.push(i);
  ctx.save();
  ctx.fillStyle = css("--fg");
  ctx.beginPath();
  for (const i of seen) {
    const x = u.valToPos(c.start[i], "x", true);
    if (merged && i !== side.chosen) {
      const of = columns[c.forced[i]], k = Math.floor(x / (2 * px));
      of.set(k, (of.get(k) ?? 0) + 1);
      continue;
    }
    const h = (i === side.chosen ? 14 : 7) * px, w = (i === side.chosen ? 5 : 3) * px;
    if (c.forced[i]) {
      ctx.moveTo(x - w, top + 8 * px);
      ctx.lineTo(x + w, top + 8 * px);
      ctx.lineTo(x, top + 8 * px + h);
    } else ctx.rect(x - px / 2, top, i === side.chosen ? 2 * px : px, h);
  }
  ctx.fill();
  columns.forEach((of, forced) => {
    const most = Math.max(...of.values());
    for (const [k, n] of of) { const h = 7 * px * n / most; ctx.fillRect(k * 2 * px, top + (forced ? 15 : 7) * px - h, 2 * px, h); }
  });
  ctx.restore();
};

// why describes a cycle: the state that the policy saw before it, and its result.
const why = (r, side) => {
  const c = side.run.cycles, i = side.chosen, name = report.policies[side.run.policy].name;
  const asked = c.asked[i] < 0 ? "a wait of " + span(-c.asked[i]) : "an allocation of " + bytes(c.asked[i]);
  const saw = `${name} saw ${units.GiB(c.live[i])} live of ${units.GiB(r.limit)}, before ${asked}, and answered ${r.reasons[c.reason[i]]}.`;
  const came = `It took ${span(c.took[i])}, held the program for ${span(c.held[i])}, freed ${units.GiB(c.freed[i])} and left ${units.GiB(c.after[i])}.`;
  return c.forced[i]
    ? `${i + 1} of ${c.start.length}: at ${c.start[i].toFixed(4)} s an allocation did not fit, and the refusal ladder ran a cycle. ${came} Last asked before it, ${saw}`
    : `${i + 1} of ${c.start.length}: at ${c.start[i].toFixed(4)} s the policy asked for a cycle. ${saw} ${came}`;
};

// memory draws the pair of a recording. Both show the same time.
const memory = (el, r) => {
  const plots = [], chosen = [], said = html("output", { className: "said", textContent: "Choose a cycle to read why it ran." });
  let moving = false;
  const zoom = (min, max) => {
    if (moving) return;
    moving = true;
    const from = Math.max(0, Math.min(min, r.end)), to = Math.min(r.end, max);
    for (const u of plots) if (to > from) u.setScale("x", { min: from, max: to });
    moving = false;
    looked(el);
  };
  const seen = () => [plots[0].scales.x.min, plots[0].scales.x.max];
  const scaleBy = (f, at) => { const [a, b] = seen(), m = at ?? (a + b) / 2; zoom(m - (m - a) * f, m + (b - m) * f); };
  const shiftBy = (f) => { const [a, b] = seen(), d = Math.max(-a, Math.min(f * (b - a), r.end - b)); zoom(a + d, b + d); };
  const keys = { ArrowLeft: () => shiftBy(-.2), ArrowRight: () => shiftBy(.2), "+": () => scaleBy(.6), "=": () => scaleBy(.6), "-": () => scaleBy(1 / .6), "0": () => zoom(0, r.end) };

  const half = (first, s) => {
    const place = html("div"), side = { run: r.runs[first], chosen: -1 };
    let u;
    const choose = (i) => {
      if (i < 0 || i >= side.run.cycles.start.length) return;
      side.chosen = i;
      const [a, b] = seen(), t = side.run.cycles.start[i];
      if (t < a || t > b) zoom(t - (b - a) / 2, t + (b - a) / 2);
      said.textContent = why(r, side);
      u.redraw();
      plots.cycle = () => [s, i];
      looked(el);
    };
    chosen[s] = choose;
    const draw = () => {
      const { t, live, reach } = side.run.decoded ??= { t: floats(side.run.t), live: floats(side.run.live), reach: floats(side.run.reach) };
      const range = u ? seen() : [0, r.end], p = side.run.policy;
      const values = ["live", "reachable", "garbage"].map(() => html("b"));
      const shown = () => {
        const at = u && u.cursor.idx, ok = at !== null && at !== undefined;
        values[0].textContent = ok ? units.GiB(live[at]) : "peak " + units.GiB(side.run.peak);
        values[1].textContent = ok ? units.GiB(reach[at]) : "mean " + units.GiB(side.run.mean - side.run.garbage);
        values[2].textContent = ok ? units.GiB(live[at] - reach[at]) : "mean " + units.GiB(side.run.garbage);
      };
      const old = u;
      u = new uPlot({
        width: width(place), height: 280, legend: { show: false },
        cursor: { drag: { x: true, y: false }, sync: { key: r.name, scales: ["x", null] }, points: { show: false } },
        scales: { x: { time: false, range: (_, a, b) => [a, b] }, y: { range: [0, r.top * 1.1] } },
        axes: [axis({ label: "time of the run (s)", unit: "time" }, place, true), axis(memoryAxis(r.top), place)],
        series: [{}, { stroke: colour(p), width: 1, fill: colour(p) + "50", paths: steps(side), points: { show: false } },
          { stroke: colour(p), width: 0, fill: colour(p) + "B0", paths: steps(side), points: { show: false } }],
        hooks: { draw: [limit(r), marks(side)], setCursor: [shown], setScale: [(v, k) => k === "x" && plots.length === 2 && zoom(v.scales.x.min, v.scales.x.max)] },
      }, [t, live, reach], place);
      shown();
      const tint = (alpha, text, v) => html("span", {}, Object.assign(html("span"), { style: `background: ${colour(p)}${alpha}; width: 1.2rem; height: .7rem` }), text + " ", v);
      place.append(html("div", { className: "legend" }, html("span", {}, line(p), "live ", values[0]), tint("FF", "reachable", values[1]), tint("50", "garbage", values[2])));
      u.root.tabIndex = 0;
      u.root.setAttribute("role", "img");
      u.root.setAttribute("aria-label", `Memory over time under ${report.policies[p].name}: peak ${units.GiB(side.run.peak)} live of ${units.GiB(r.limit)}, ${side.run.cycles.start.length} cycles.`);
      u.root.onkeydown = (e) => { if (keys[e.key]) { e.preventDefault(); keys[e.key](); } };
      u.over.ondblclick = () => zoom(0, r.end);
      fingers(u, { shift: shiftBy, scale: scaleBy });
      u.over.onclick = () => {
        const near = side.run.cycles.start.map((t, i) => [Math.abs(u.valToPos(t, "x") - u.cursor.left), i]).reduce((a, b) => b[0] < a[0] ? b : a, [8, -1]);
        choose(near[1]);
      };
      if (old) plots[plots.indexOf(old)] = u; else plots.push(u);
      if (old) old.destroy();
      if (range) u.setScale("x", { min: range[0], max: range[1] });
    };
    const select = html("select", { ariaLabel: "policy", onchange() { side.run = r.runs[+this.value]; r.pair = sides.map((x) => report.policies[x[2].run.policy].name); side.chosen = -1; place.replaceChildren(); draw(); looked(el); } },
      ...r.runs.map((run, i) => html("option", { value: i, textContent: report.policies[run.policy].name, selected: i === first })));
    const step = (d, text) => html("button", { type: "button", textContent: text, ariaLabel: (d < 0 ? "previous" : "next") + " cycle", onclick: () => choose(side.chosen < 0 ? (d > 0 ? 0 : side.run.cycles.start.length - 1) : side.chosen + d) });
    return [html("div", {}, html("div", { className: "tools" }, select, step(-1, "\u2039 cycle"), step(1, "cycle \u203A")), place), draw, side];
  };
  const sides = r.shown.map(half);
  const key = `- - limit ${units.GiB(r.limit)}    | cycle by the policy    \u25BC cycle by a refusal    With many cycles: the least, the mean and the greatest value of each column, and the number of cycles, refusals below. Zoom in to see each.`;
  el.replaceChildren(html("div", { className: "pair" }, ...sides.map((s) => s[0])), html("p", { className: "key", textContent: key }), said);
  sides.forEach((s) => s[1]());
  return Object.assign(plots, { zoom, choose: (s, i) => chosen[s]?.(i) });
};
