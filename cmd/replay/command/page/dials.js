// The dials of a recording: the settings, the questions to the simulator, and the display of
// its answers: coarse while a finger moves, exact when it rests.
const notches = 300; // of a dial: few enough that each is seen in its figures
const scaleOf = (least, most) => ({ at: (k) => least * (most / least) ** (k / notches), of: (v) => Math.round(notches * Math.log(v / least) / Math.log(most / least)) });
const dialScales = { limit: scaleOf(1, 8), cycle: scaleOf(1e-5, 1) };
const priceAt = (k) => k === 0 ? 0 : 1e-4 * 1e4 ** ((k - 1) / (notches - 1)); // s of pause for a GiB held for a second
const priceOf = (v) => v <= 0 ? 0 : Math.round(1 + (notches - 1) * Math.log(v / 1e-4) / Math.log(1e4));
const digits = (v) => String(+v.toPrecision(3));
const cycleText = (s) => s >= 1 ? digits(s) + "s" : s >= 1e-3 ? digits(1e3 * s) + "ms" : digits(1e6 * s) + "us";

const sweepLimits = ["1.1x", "1.25x", "1.5x", "2x", "3x", "4x", "6x"];
const usual = { limit: "1.5x", cycle: "10ms", price: 0, policies: ["never", "cudajl", "sqrt", "v8step", "pacer", "optimum-overlap"] };

// ranks is the table of the policies by their loss, with a bar for it.
const ranks = (table) => {
  const el = rows(table), most = Math.max(...table.slice(1).map((row) => parseFloat(row[1]) || 0));
  [...el.querySelectorAll("tr")].slice(1).forEach((tr, i) => {
    const p = report.policies.findIndex((p) => p.name === table[i + 1][0]);
    if (p < 0) return;
    tr.firstChild.prepend(sample(p), " ");
    tr.children[1].style = `--mark: ${colour(p)}; --part: ${100 * parseFloat(table[i + 1][1]) / (most || 1)}%`;
  });
  return el;
};
const rows = (table) => html("div", { className: "scroll", tabIndex: 0 }, html("table", {},
  ...table.map((row, i) => html("tr", {}, ...row.map((c) => html(i ? "td" : "th", { textContent: c }))))));
const cards = (list) => list.map((c) => {
  const li = html("li", {}, html("p", { className: "name", textContent: c.name }), html("p", { className: "value", textContent: c.value }), html("p", { className: "about", textContent: c.about }));
  if (c.mark) li.style.setProperty("--mark", c.mark);
  return li;
});

// adopt numbers the policies of an answer as the page does: names are the answer's, in
// its order.
const adopt = (looks, names, parts) => {
  for (const l of looks) if (!report.policies.some((p) => p.name === l.name)) report.policies.push(l);
  const number = names.map((n) => report.policies.findIndex((p) => p.name === n));
  for (const p of parts) p.policy = number[p.policy];
};

// following says how far n equal parts of a job are, and how long the rest takes at the same speed.
const following = (n, say) => {
  const began = performance.now(), parts = new Array(n).fill(0);
  return (part, done) => {
    parts[part] = Math.max(parts[part], Math.min(1, done));
    const share = parts.reduce((sum, p) => sum + p, 0) / n, took = (performance.now() - began) / 1e3;
    say(`${Math.round(100 * share)}% done` + (took > 1 ? `, about ${Math.ceil(took * (1 - share) / share)}s left` : ""), share);
  };
};

// optimaFirst puts the runs that take longest before the others, so that all workers end
// at about the same time.
const optimaFirst = (a, b) => b.startsWith("optimum-") - a.startsWith("optimum-");

// liven makes the dials of a section move. Its use(recording, state) puts a recording
// into it.
const liven = (section) => {
  let recording;
  const k = +section.querySelector(".memory").dataset.recording, form = section.querySelector(".dials"), el = form.elements;
  const find = (selector) => section.querySelector(selector), said = find(".verdict"), bar = find(".sliders progress"), left = find(".left");
  const problem = form.querySelector(":scope > .problem");
  let state = structuredClone(usual), past = [], future = [], known = new Map(), resting, turn = 0;
  const live = { section, get recording() { return recording; }, get state() { return state; } };

  const factor = () => parseFloat(state.limit);
  const question = () => ({ policies: state.policies, limits: [state.limit], limit: 0, cycle: state.cycle, ladder: "2x" });
  const shown = () => {
    const names = state.policies, two = (report.recordings[k].pair ?? []).filter((p) => names.includes(p));
    for (const p of ["pacer", "never", ...names]) if (two.length < 2 && names.includes(p) && !two.includes(p)) two.push(p);
    return two;
  };

  // seen is the view of the charts: a part of the time, two policies, a cycle,
  // and the chart below. A link holds it too.
  live.seen = () => {
    const r = report.recordings[k], plots = drawn.get(find(".memory .made")), { min, max } = plots?.[0]?.scales.x ?? {};
    return { from: min, to: max, zoomed: min > 0 || max < r.end, pair: r.pair, cycle: plots?.cycle?.(), chart: find(".panel:not([hidden])").dataset.chart };
  };
  let wanted; // what a link asks to be seen
  const want = () => {
    const { from, to, cycle, chart } = wanted, plots = drawn.get(find(".memory .made"));
    wanted = undefined;
    plots?.zoom(from ?? 0, to ?? report.recordings[k].end);
    if (cycle) plots?.choose(...cycle);
    if (chart) section.querySelectorAll("[role=tab]")[[...section.querySelectorAll(".panel")].findIndex((p) => p.dataset.chart === chart)]?.click();
  };

  // show puts runs into the page: they have looks, a recording's data and results.
  const show = (answer, pair) => {
    const was = report.recordings[k], place = find(".memory .made"), { from, to, zoomed } = live.seen();
    const r = answer.recording;
    adopt(answer.policies, answer.policies.map((p) => p.name), r.runs);
    const index = (name) => Math.max(0, r.runs.findIndex((run) => report.policies[run.policy].name === name));
    report.recordings[k] = { ...r, charts: was.charts, pair, shown: [index(pair[0]), index(pair[1] ?? pair[0])] };
    find(".at").textContent = answer.at;
    wipe(place);
    draw(find(".memory"));
    const now = drawn.get(place);
    if (zoomed) now?.zoom(from, to);
  };

  const fail = (err) => { problem.textContent = err ? err.message : ""; };

  // coarse asks for the two policies that are seen, at once.
  const coarse = async () => {
    const mine = ++turn, pair = shown();
    try {
      const answer = await ask(recording, "run", { ...question(), policies: pair, slots: 400 }, { key: k + "coarse", front: true });
      if (mine === turn) { fail(); show(answer, pair); }
    } catch (err) { if (mine === turn) fail(err); }
  };

  // exact asks for everything, once the dials rest: each policy by itself, so that
  // all workers have something to do.
  const exact = async () => {
    const mine = turn, q = question(), pair = shown(), ended = [];
    const follow = following(q.policies.length + 1, (text, share) => { if (mine === turn) { left.textContent = text; bar.value = share; } });
    const limits = [...new Set([...sweepLimits, state.limit])].sort((a, b) => parseFloat(a) - parseFloat(b));
    try {
      const id = (p) => [p, q.cycle].join();
      const all = { ...q, limits, limit: limits.indexOf(state.limit) };
      const detail = ask(recording, "run", { ...q, slots: 2500 }, { key: k + "exact", front: true }).then((a) => { if (mine === turn) { show(a, pair); if (wanted) want(); } follow(0, 1); });
      const [, ...parts] = await Promise.all([detail, ...q.policies.toSorted(optimaFirst).map((p, i) => ask(recording, "sweep", { ...all, policies: [p], known: known.get(id(p)) ?? [] }, { key: k + "sweep" + p, progress: (done) => follow(i + 1, done) })
        .then((results) => { known.set(id(p), results); follow(i + 1, 1); ended.push(p); if (mine === turn) early(all, ended, id); return results; }))]);
      if (mine !== turn) return;
      live.swept = parts.flat();
      const picture = await ask(recording, "view", { ...all, known: live.swept, price: state.price }, { key: k + "view", front: true });
      if (mine !== turn) return;
      paint(picture, q.policies);
      fail();
      busy(false);
    } catch (err) { if (mine === turn) { fail(err); busy(false); } }
  };

  // early paints the policies that have ended, until the whole picture of this recording exists.
  let asking = false;
  const early = async (q, ended, id) => {
    if (asking || live.picture || ended.length === q.policies.length) return;
    asking = true;
    const mine = turn, policies = q.policies.filter((p) => ended.includes(p));
    try {
      const p = await ask(recording, "view", { ...q, policies, known: policies.flatMap((p) => known.get(id(p))), price: state.price }, { key: k + "early", front: true });
      if (mine === turn && !live.picture) paint({ ...p, verdict: `So far, of ${policies.length} of ${q.policies.length} policies: ${p.verdict}` }, policies, true);
    } catch { /* the whole picture says it */ }
    asking = false;
  };

  const paint = (p, policies, part) => {
    adopt([], policies, Object.values(p.charts).flat().flatMap((c) => c.lines));
    if (!part) live.picture = p;
    report.recordings[k].charts = p.charts;
    said.textContent = p.verdict;
    find(".beside").textContent = p.beside;
    find(".ranks").replaceChildren(ranks(p.table));
    find(".runs .scroll").replaceWith(rows(p.runs));
    find(".reasons .scroll").replaceWith(rows(p.reasons));
    for (const f of p.figures) find(`.panel[data-chart=${f.kind}] .table .scroll`).replaceWith(rows(f.table));
    find(".collections .made").replaceChildren();
    for (const panel of section.querySelectorAll(".panel")) wipe(panel.querySelector(".made"));
    drawSeen();
  };

  // dial puts the state into the form.
  const dial = () => {
    el.limit.value = dialScales.limit.of(factor());
    el.cycle.value = dialScales.cycle.of(seconds(state.cycle));
    el.price.value = priceOf(state.price);
    for (const box of form.querySelectorAll("[name=policy]")) box.checked = state.policies.includes(box.value);
    el.others.value = state.policies.filter((p) => !form.querySelector(`[name=policy][value="${CSS.escape(p)}"]`)).join(", ");
    label();
  };
  const label = () => {
    const peak = recording.info.peak_reachable_bytes, bytesText = units.GiB(factor() * peak / 2 ** 30);
    el.limit.previousElementSibling.textContent = `${digits(factor())}x (${bytesText})`;
    el.limit.ariaValueText = `${digits(factor())}x, ${bytesText}`;
    el.cycle.previousElementSibling.textContent = el.cycle.ariaValueText = state.cycle;
    el.price.previousElementSibling.textContent = el.price.ariaValueText = state.price ? `${span(state.price)} a GiB and second` : "none";
    form.querySelector(".choice summary span").textContent = state.policies.join(", ");
    el.undo.disabled = !past.length;
    el.redo.disabled = !future.length;
  };

  // change makes a new state of the old one. Moves of one dial in a row are one step back.
  let moved;
  const change = (to, what) => {
    if (!what || moved !== what) past.push(structuredClone(state));
    moved = what;
    future = [];
    state = { ...state, ...to };
    label();
    after();
  };
  const after = () => {
    clearTimeout(resting);
    busy(true);
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; coarse(); }); }
    resting = setTimeout(() => { moved = undefined; note(); exact(); }, 200);
  };
  let waiting = false;
  const busy = (now) => { section.ariaBusy = String(now); bar.value = 0; left.textContent = ""; };
  const step = (from, to) => {
    if (!from.length) return;
    to.push(structuredClone(state));
    state = from.pop();
    moved = undefined;
    dial();
    after();
  };
  const note = () => { if (recording) live.onstate?.(); };
  let noting;
  section.addEventListener("seen", () => { clearTimeout(noting); noting = setTimeout(note, 300); });

  el.limit.oninput = () => change({ limit: digits(dialScales.limit.at(+el.limit.value)) + "x" }, "limit");
  el.cycle.oninput = () => change({ cycle: cycleText(dialScales.cycle.at(+el.cycle.value)) }, "cycle");
  el.price.oninput = () => change({ price: +digits(priceAt(+el.price.value)) }, "price");
  const choose = () => {
    const boxes = [...form.querySelectorAll("[name=policy]:checked")].map((b) => b.value);
    const others = split(el.others.value).filter((p) => !boxes.includes(p));
    if (boxes.length + others.length) change({ policies: [...boxes, ...others] });
  };
  for (const box of form.querySelectorAll("[name=policy]")) box.onchange = choose;
  el.others.onchange = choose;
  el.undo.onclick = () => step(past, future);
  el.redo.onclick = () => step(future, past);
  section.addEventListener("keydown", (e) => {
    if (!(e.ctrlKey || e.metaKey) || e.target.matches("textarea, [type=text]")) return;
    const key = e.key.toLowerCase();
    if (key === "z" && !e.shiftKey) { e.preventDefault(); step(past, future); }
    if (key === "y" || key === "z" && e.shiftKey) { e.preventDefault(); step(future, past); }
  });
  form.onsubmit = (e) => e.preventDefault();
  el.advise.onclick = async () => {
    el.advise.disabled = true;
    el.advise.textContent = "looking for it ...";
    try {
      const follow = following(1, (text) => { el.advise.textContent = "looking for it: " + text; });
      const a = await ask(recording, "advise", { ...question(), worlds: 10, memory: +form.dataset.memory }, { progress: (done) => follow(0, done) });
      live.advice = a;
      find(".cards").replaceChildren(...cards(a.cards));
      if (a.go) { lines("To copy:\n" + a.go); change({ limit: (a.limit_bytes + 0.5) / recording.info.peak_reachable_bytes + "x" }); dial(); }
      fail();
    } catch (err) { fail(err); }
    el.advise.disabled = false;
    el.advise.textContent = "find the best limit";
  };
  const lines = (text) => { const pre = find(".lines"); pre.hidden = !text; pre.textContent = text; };
  saving(live, form, lines);

  live.use = (one, to, seen) => {
    recording = one;
    wanted = seen;
    known.clear();
    live.picture = undefined;
    said.textContent = "";
    state = { ...structuredClone(usual), ...to };
    past = [];
    future = [];
    report.recordings[k].pair = seen?.pair;
    dial();
    busy(true);
    coarse();
    exact();
  };
  return live;
};

// split cuts a list at its commas, but for those between the parameters of a policy.
const split = (text) => text.split(",").map((t) => t.trim()).filter(Boolean)
  .reduce((all, t) => { /^[a-z-]+=/.test(t) && all.length ? all.push(all.pop() + "," + t) : all.push(t); return all; }, []);

const seconds = (text) => { const [, v, u] = /^([\d.]+)(s|ms|us)$/.exec(text) ?? [0, 10, "ms"]; return v * { s: 1, ms: 1e-3, us: 1e-6 }[u]; };
