// The drawing of charts: axes, lines in the colours of policies, legends with buttons.
// The data of the page are Data of package chart.
const decoded = (text) => { // a loop: it takes a tenth of the time of Uint8Array.from, in which the page stands still
  const from = atob(text), to = new Uint8Array(from.length);
  for (let i = 0; i < to.length; i++) to[i] = from.charCodeAt(i);
  return to;
};
const unpacked = (text) => {
  const zip = new DecompressionStream("gzip"), to = zip.writable.getWriter();
  to.write(decoded(text));
  to.close();
  return new Response(zip.readable);
};
const report = await unpacked(JSON.parse(document.getElementById("data").textContent)).json();
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
let printing = false;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (p) => dark.matches && !printing ? report.policies[p].dark : report.policies[p].light;
const html = (tag, fields, ...children) => {
  const el = Object.assign(document.createElement(tag), fields);
  el.append(...children);
  return el;
};

// Numbers are written as the command line writes them: number, span and bytes are Number and
// Duration of package chart, and Bytes of package pressure. At a tick of an axis, zeros at the end
// are left out: short.
const number = (v) => v.toFixed(Math.abs(v) >= 99.95 ? 0 : Math.abs(v) >= 9.995 ? 1 : 2);
const short = (v) => Math.abs(v) >= 100 ? v.toFixed(0) : String(+v.toPrecision(3));
const spanIn = (number) => (seconds) => {
  const v = Math.abs(seconds);
  return v === 0 ? "0" : v >= 1 ? number(seconds) + "s" : v >= 1e-3 ? number(1e3 * seconds) + "ms" : number(1e6 * seconds) + "us";
};
const span = spanIn(number);
const bytes = (n) => {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; n >= 1024 && u < names.length - 1; u++) n /= 1024;
  return (u ? n.toFixed(2) : Math.round(n)) + " " + names[u];
};
const nines = (v) => +(100 - 100 * 10 ** -v).toPrecision(6) + "%";
const units = { "": (v) => v.toLocaleString("en-US"), s: span, "%": (v) => number(v) + "%", GiB: (v) => bytes(v * 2 ** 30), x: (v) => number(v) + "x", nines };
const ticks = { "": short, s: spanIn(short), "%": (v) => short(v) + "%", x: (v) => +v.toFixed(3) + "x", nines };

// Height of a chart, and its width beside a padding of 24.
const height = 300;
const width = (el) => Math.max(240, el.clientWidth);

// splits are the ticks of an axis on which factors are distances: 1, 2 and 5 of
// each power of ten, or the powers alone where they are many.
const splits = (a) => (u, i, min, max) => {
  const ticks = a.zero ? [0] : [], low = Math.max(min, a.zero || min), digits = max / low > 500 ? [1] : [1, 2, 5];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(max); e++)
    for (const d of digits) if (d * 10 ** e >= low * .999 && d * 10 ** e <= max * 1.001) ticks.push(d * 10 ** e);
  return ticks;
};

// memoryAxis is one of GiB up to top, in the unit in which that is at least 1.
const memoryAxis = (top) => {
  let names = ["GiB", "MiB", "KiB", "B"], per = 1;
  for (; top * per < 1 && names.length > 1; per *= 1024) names.shift();
  const incrs = [1, 10, 100, 1000].flatMap((ten) => [1, 2, 5].map((k) => k * ten / per));
  return { label: `memory (${names[0]})`, unit: "GiB", per, ...(per > 1 ? { incrs } : {}) };
};

// axis is one of the two of a chart; a narrow chart has no room for its label.
const axis = (a, el, across) => {
  const narrow = !across && el.clientWidth < 420;
  return {
    label: narrow ? undefined : a.label, stroke: css("--fg"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20,
    grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, size: across ? 34 : 64,
    ...(a.incrs ? { incrs: a.incrs } : {}), ...(a.ticks ? { splits: () => a.ticks } : a.log || a.zero ? { splits: splits(a) } : {}), filter: (u, at) => at,
    values: (u, at) => at.map((v) => v === null ? "" : a.unit === "GiB" || a.unit === "time" ? +(v * (a.per ?? 1)).toPrecision(6) : ticks[a.unit](v)),
  };
};

// scale is a linear one, or for a.zero > 0 one of factors that also has a place
// for nothing: linear below zero, logarithmic above.
const scale = (a) => ({ time: false, ...(a.log ? { distr: 3 } : a.zero ? { distr: 4, asinh: a.zero } : {}), ...(a.range ? { range: a.range } : {}) });

// sample draws the line of a policy as its legend shows it.
const sample = (p) => {
  const { dash, width } = report.policies[p];
  const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "line");
  svg.setAttribute("viewBox", "0 0 28 10");
  svg.setAttribute("aria-hidden", "true");
  for (const [k, v] of Object.entries({ x1: 0, x2: 28, y1: 5, y2: 5, stroke: colour(p), "stroke-width": width, "stroke-dasharray": (dash || []).join(" ") })) line.setAttribute(k, v);
  svg.append(line);
  return svg;
};

// legend makes a button for each line: its dash, its name, and its value where
// the cursor is, or its summary without a cursor.
const legend = (u, chart) => {
  const values = chart.lines.map((l) => html("b", { textContent: l.rest }));
  const buttons = chart.lines.map((l, i) => html("button", {
    type: "button", ariaPressed: "true",
    onclick() {
      const show = this.ariaPressed !== "true";
      this.ariaPressed = String(show);
      u.setSeries(i + 1, { show });
    },
  }, sample(l.policy), report.policies[l.policy].name, " ", values[i]));
  return {
    el: html("div", { className: "legend", role: "group", ariaLabel: "lines" }, ...buttons),
    update() {
      const at = u.cursor.idx;
      chart.lines.forEach((l, i) => {
        const v = at === null || at === undefined ? null : u.data[i + 1][at];
        values[i].textContent = v === null || v === undefined ? l.rest : units[chart.y.unit](v);
      });
    },
  };
};

// looked reports that the view has changed.
const looked = (el) => el.dispatchEvent(new CustomEvent("seen", { bubbles: true }));

// fingers lets touch and the wheel move a chart: one finger reads it, and moves a zoomed chart.
// Two fingers, or the wheel with Ctrl, zoom. Vertical moves scroll the page.
const fingers = (u, { shift, scale }) => {
  const over = u.over, down = new Map(), at = (e) => e.clientX - over.getBoundingClientRect().left;
  over.style.touchAction = "pan-y";
  over.addEventListener("pointerdown", (e) => { if (e.pointerType === "touch") down.set(e.pointerId, at(e)); });
  over.addEventListener("pointermove", (e) => {
    const was = down.get(e.pointerId), now = at(e), other = [...down].find(([id]) => id !== e.pointerId)?.[1];
    if (was === undefined) return;
    down.set(e.pointerId, now);
    if (other === undefined) {
      u.setCursor({ left: now, top: over.clientHeight / 2 });
      shift((was - now) / over.clientWidth);
    } else if (Math.abs(now - other) > 8) scale(Math.abs((was - other) / (now - other)), u.posToVal(other, "x"));
  });
  for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, (e) => down.delete(e.pointerId));
  over.addEventListener("wheel", (e) => {
    const across = Math.abs(e.deltaX) > Math.abs(e.deltaY);
    if (!across && !e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    across ? shift(e.deltaX / over.clientWidth) : scale(Math.exp(.002 * e.deltaY), u.posToVal(at(e), "x"));
  }, { passive: false });
};

// lines draws charts of one line for each policy, side by side.
const lines = (el, charts) => {
  const places = charts.map(() => html("div"));
  el.replaceChildren(html("div", { className: "pair" }, ...places));
  return charts.map((c, i) => lineChart(places[i], c));
};

const lineChart = (el, chart) => {
  let keys;
  const dots = chart.dots ? { points: { show: true, size: 8 } } : { points: { show: false } };
  const series = chart.lines.map((l) => ({
    stroke: () => colour(l.policy), dash: report.policies[l.policy].dash || undefined, width: report.policies[l.policy].width,
    spanGaps: true, ...(chart.step ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}), ...dots,
    ...(chart.dots ? { points: { show: true, size: report.policies[l.policy].width > 2 ? 12 : 8, fill: colour(l.policy) } } : {}),
  }));
  const tables = chart.lines.map((l) => [l.x, l.y]);
  if (chart.front) {
    series.push({ stroke: () => css("--soft"), width: 1, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } });
    tables.push(chart.front);
  }
  const u = new uPlot({
    width: width(el), height, legend: { show: false }, cursor: { drag: { x: true, y: false } },
    scales: { x: scale(chart.x), y: scale(chart.y) }, axes: [axis(chart.x, el, true), axis(chart.y, el)],
    series: [{}, ...series], hooks: { setCursor: [() => keys && keys.update()], draw: chart.dots ? [(u) => names(u, chart)] : [] },
  }, uPlot.join(tables), el);
  keys = legend(u, chart);
  el.append(keys.el);
  u.root.setAttribute("role", "img");
  u.root.setAttribute("aria-label", chart.label);
  return u;
};

// names writes the names of points beside them.
const names = (u, chart) => {
  if (!chart.front) return;
  const ctx = u.ctx, px = devicePixelRatio;
  ctx.save();
  ctx.font = 12 * px + "px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  const placed = [];
  chart.lines.forEach((l, i) => {
    if (!u.series[i + 1].show) return;
    const name = report.policies[l.policy].name, w = ctx.measureText(name).width;
    let x = u.valToPos(l.x[0], "x", true) + 9 * px, y = u.valToPos(l.y[0], "y", true) - 9 * px;
    if (x + w > u.bbox.left + u.bbox.width) x -= w + 18 * px;
    while (placed.some((p) => Math.abs(p.y - y) < 13 * px && x < p.x + p.w && p.x < x + w)) y -= 13 * px;
    placed.push({ x, y, w });
    ctx.fillStyle = colour(l.policy);
    ctx.fillText(name, x, y);
  });
  ctx.restore();
};
