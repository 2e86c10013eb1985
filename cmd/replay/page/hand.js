// A policy that is written in the page, in Go: it runs beside the others, and what is
// wrong with it is said below it.
const handing = (live, form, change, lines) => {
  const el = form.elements, problem = form.querySelector(".hand .problem");
  let wait;
  const check = async () => {
    const text = el.hand.value;
    let name = "", error = "";
    try { name = await ask(live.recording, "hand", { hand: text }, { key: "hand" }); } catch (err) { error = err.message; }
    if (text !== el.hand.value) return;
    problem.textContent = error;
    const at = /^(\d+):(\d+):/.exec(error);
    el.hand.ariaInvalid = String(!!error);
    problem.onclick = () => { if (at) mark(el.hand, +at[1], +at[2]); };
    if (!error) change({ hand: { text, name, on: el.handed.checked } }, "hand");
  };
  el.hand.oninput = () => { clearTimeout(wait); wait = setTimeout(check, 300); };
  el.handed.onchange = check;
  el.hand.onkeydown = (e) => { // a tab indents; Escape first lets it leave the field
    if (e.key === "Escape") el.hand.dataset.leave = "1";
    else if (e.key === "Tab" && !e.shiftKey && !el.hand.dataset.leave) { e.preventDefault(); el.hand.setRangeText("\t", el.hand.selectionStart, el.hand.selectionEnd, "end"); }
    else delete el.hand.dataset.leave;
  };
  el.copy.onclick = () => copy(el.hand.value, lines);
};

// mark selects the line of a problem.
const mark = (area, row, column) => {
  const before = area.value.split("\n").slice(0, row - 1).join("\n").length + (row > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(before + column - 1, (area.value + "\n").indexOf("\n", before));
};
