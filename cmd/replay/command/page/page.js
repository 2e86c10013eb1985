// The page: when charts are drawn, tabs, tables, the keyboard, printing.
document.body.classList.add("js");
const drawn = new Map(); // place of a chart -> its plots

const draw = (el) => {
  const r = report.recordings[+el.dataset.recording], place = el.querySelector(".made");
  if (drawn.has(place) || !place.clientWidth || !r.runs) return;
  drawn.set(place, el.classList.contains("memory") ? memory(place, r) : lines(place, r.charts?.[el.dataset.chart] ?? []));
};
const drawSeen = () => document.querySelectorAll(".memory, .panel").forEach(draw);
const wipe = (place) => {
  drawn.get(place)?.forEach((u) => u.destroy());
  drawn.delete(place);
  place.replaceChildren();
};
const redraw = () => {
  for (const place of [...drawn.keys()]) wipe(place);
  drawSeen();
};

// Tabs, as the ARIA practices have them: arrow keys go from one to the next.
document.querySelectorAll(".tabs").forEach((list) => {
  const panels = [...list.parentElement.querySelectorAll(".panel")];
  const open = (k, focus) => {
    panels.forEach((p, i) => {
      p.hidden = i !== k;
      tabs[i].ariaSelected = String(i === k);
      tabs[i].tabIndex = i === k ? 0 : -1;
    });
    if (focus) tabs[k].focus();
    drawSeen();
    looked(list);
  };
  const tabs = panels.map((p, i) => {
    const heading = p.querySelector("h3");
    p.id = list.parentElement.id + "-" + p.dataset.chart;
    p.setAttribute("role", "tabpanel");
    p.setAttribute("aria-label", heading.textContent);
    const tab = html("button", { type: "button", role: "tab", textContent: heading.textContent, onclick: () => open(i) });
    tab.setAttribute("aria-controls", p.id);
    tab.onkeydown = (e) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: panels.length - 1 }[e.key];
      if (to !== undefined) { e.preventDefault(); open((to + panels.length) % panels.length, true); }
    };
    return tab;
  });
  list.append(...tabs);
  open(0);
});

// Every collection: a table that is made when somebody opens it.
document.querySelectorAll(".collections").forEach((box) => box.addEventListener("toggle", () => {
  const place = box.querySelector(".made"), r = report.recordings[+box.dataset.recording];
  if (!box.open || place.childElementCount) return;
  const row = (cells, tag) => html("tr", {}, ...cells.map((c) => html(tag, { textContent: c })));
  const rows = r.runs.flatMap((run) => run.cycles.start.map((t, i) => {
    const c = run.cycles;
    return [report.policies[run.policy].name, t.toFixed(4) + " s", c.forced[i] ? "refusal" : "policy", span(c.took[i]), span(c.held[i]),
      units.GiB(c.live[i]), units.GiB(c.freed[i]), units.GiB(c.after[i]), r.reasons[c.reason[i]]];
  }));
  const head = ["policy", "time of the run", "asked by", "took", "held", "live before", "freed", "live after", "last answer of the policy"];
  place.append(html("div", { className: "scroll", tabIndex: 0 }, html("table", {}, row(head, "th"), ...rows.map((c) => row(c, "td")))));
}));

document.querySelectorAll(".recording").forEach((d) => d.addEventListener("toggle", drawSeen));
const follow = () => {
  const d = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (d && d.tagName === "DETAILS") { d.open = true; d.scrollIntoView(); }
};
addEventListener("hashchange", follow);
follow();
dark.addEventListener("change", redraw);
let last = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === last) return;
  last = innerWidth;
  for (const plots of drawn.values()) for (const u of plots) u.setSize({ width: width(u.root.parentElement), height: u.height });
});
// On paper all is light, and every chart of an open recording is there.
addEventListener("beforeprint", () => {
  printing = true;
  document.querySelectorAll(".panel").forEach((p) => { p.dataset.was = p.hidden; p.hidden = false; });
  redraw();
});
addEventListener("afterprint", () => {
  printing = false;
  document.querySelectorAll(".panel").forEach((p) => { p.hidden = p.dataset.was === "true"; });
  redraw();
});
drawSeen();
