"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Black, grey and dark blue are for print; on a dark page they turn light.
  const light = { "#000000": "#ffffff", "#777777": "#b0b0b0", "#0072b2": "#3d9bdc" };
  const tone = (c) => dark.matches && light[c] || c;

  const axis = (label, values, extra) => Object.assign({
    label, values, stroke: css("--fg"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 },
  }, extra);
  const digits = (v) => v === null || v === undefined ? "" : v === 0 ? "0" : v.toPrecision(3);
  const plain = (unit) => (u, splits) => splits.map((v) => v === null ? "" : +v.toPrecision(6) + unit);

  const series = (i, unit, more) => Object.assign({
    label: data.policies[i].name, stroke: () => tone(data.policies[i].color), dash: data.policies[i].dash || undefined,
    width: 1.5, spanGaps: true, value: (u, v) => v === null || v === undefined ? "" : digits(v) + " " + unit,
  }, more);

  const stepped = uPlot.paths.stepped({ align: 1 });
  const dots = { points: { show: true, size: 7 } };

  // Marks of the cycles of each policy that is shown, along the upper edge.
  const marks = (runs) => (u) => {
    const ctx = u.ctx, top = u.bbox.top;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    runs.forEach((run, k) => {
      if (!u.series[k + 1].show) return;
      ctx.strokeStyle = tone(data.policies[run.policy].color);
      const y = top + k * 7 * devicePixelRatio;
      ctx.beginPath();
      for (const t of run.cycles) {
        const x = u.valToPos(t, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        ctx.moveTo(x, y);
        ctx.lineTo(x, y + 5 * devicePixelRatio);
      }
      ctx.stroke();
    });
    ctx.restore();
  };

  const charts = {
    memory(trace) {
      const tables = trace.runs.map((r) => [r.t, r.live]);
      const joined = uPlot.join(tables);
      joined.push(joined[0].map(() => trace.limit));
      return {
        data: joined,
        opts: {
          scales: { x: { time: false } },
          series: [{ label: "time", value: (u, v) => v === null ? "" : v.toFixed(4) + " s" },
            ...trace.runs.map((r) => series(r.policy, "GiB", { paths: stepped, points: { show: false }, show: data.policies[r.policy].shown })),
            { label: "limit", stroke: () => css("--fg"), dash: [4, 4], width: 1, points: { show: false }, value: (u, v) => v === null ? "" : digits(v) + " GiB" }],
          axes: [axis("time of the run (s)", plain("")), axis("live memory (GiB)", plain(""))],
          hooks: { draw: [marks(trace.runs)] },
        },
      };
    },
    pauses(trace) {
      const held = trace.runs.filter((r) => r.pauses.length);
      if (!held.length) return null;
      const tables = held.map((r) => [r.pauses, r.shares]);
      return {
        data: uPlot.join(tables),
        opts: {
          scales: { x: { time: false, distr: 3 }, y: { range: [0, 100] } },
          series: [{ label: "pause", value: (u, v) => v === null ? "" : digits(v) + " ms" },
            ...held.map((r) => series(r.policy, "%", { paths: stepped, points: { show: r.pauses.length < 3, size: 7 } }))],
          axes: [axis("exposed pause (ms)", plain("")), axis("share at most this long (%)", plain(""))],
        },
      };
    },
    front(trace) {
      const tables = trace.curves.map((c) => {
        const order = c.busy.map((_, i) => i).sort((a, b) => c.busy[a] - c.busy[b]);
        const xs = [], ys = [];
        for (const i of order) {
          if (xs.length && xs[xs.length - 1] === c.busy[i]) ys[ys.length - 1] = Math.min(ys[ys.length - 1], c.exposed[i]);
          else { xs.push(c.busy[i]); ys.push(c.exposed[i]); }
        }
        return [xs, ys];
      });
      return {
        data: uPlot.join(tables),
        opts: {
          scales: { x: { time: false } },
          series: [{ label: "collector", value: (u, v) => v === null ? "" : digits(v) + " s" }, ...trace.curves.map((c) => series(c.policy, "s", dots))],
          axes: [axis("collector time (s), a point for each limit", plain("")), axis("exposed pause (s)", plain(""))],
        },
      };
    },
    limits(trace) {
      return {
        data: [trace.factors, ...trace.curves.map((c) => c.exposed)],
        opts: {
          scales: { x: { time: false } },
          series: [{ label: "limit", value: (u, v) => v === null ? "" : digits(v) + "x" }, ...trace.curves.map((c) => series(c.policy, "s", dots))],
          axes: [axis("limit, factor of the peak reachable bytes", plain("x")), axis("exposed pause (s)", plain(""))],
        },
      };
    },
  };

  const drawn = [];
  const width = (el) => Math.max(280, el.parentElement.clientWidth - 24);
  const draw = (el) => {
    const made = charts[el.dataset.chart](data.traces[+el.dataset.trace]);
    if (!made) return;
    el.replaceChildren();
    const u = new uPlot(Object.assign(made.opts, { width: width(el), height: 320, cursor: { drag: { x: true, y: false } }, legend: { live: true } }), made.data, el);
    drawn.push([u, el]);
  };
  const all = document.querySelectorAll(".live");
  const redraw = () => {
    for (const [u] of drawn.splice(0)) u.destroy();
    all.forEach(draw);
  };
  document.body.classList.add("interactive");
  redraw();
  all.forEach((el) => { if (el.childElementCount === 0) el.parentElement.classList.add("none"); });
  dark.addEventListener("change", redraw);
  let last = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === last) return;
    last = innerWidth;
    for (const [u, el] of drawn) u.setSize({ width: width(el), height: 320 });
  });
})();
