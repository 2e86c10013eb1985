// A policy that is written in the page: a rule, which is an expression of Go in a file
// of Go, or all of that file. It runs beside the others, and what is wrong with it is
// said below it.
const handing = (live, form, change, lines) => {
  const el = form.elements, problem = form.querySelector(".hand .problem"), twin = form.querySelector(".twin");
  const [, head, standard, tail] = /^([^]*?\n\treturn )(.*)(\n[^]*)$/.exec(el.hand.defaultValue);
  const row = head.split("\n").length, before = head.length - head.lastIndexOf("\n") - 1;
  const ruled = (text) => text.startsWith(head) && text.endsWith(tail) ? text.slice(head.length, -tail.length) : undefined;
  live.ruled = ruled;
  live.written = (rule) => head + rule.replaceAll("\n", " ") + tail;
  let wait;

  // put shows a policy; one that is more than a rule is seen in Go alone.
  live.put = (text = el.hand.defaultValue, on = false) => {
    const rule = ruled(text);
    el.hand.value = text;
    el.rule.value = rule ?? "";
    el.rule.placeholder = rule === undefined ? "what the Go file says" : standard;
    el.rule.disabled = rule === undefined;
    el.again.hidden = rule !== undefined;
    if (rule === undefined) twin.open = true;
    el.handed.checked = on;
    say("");
  };

  // say shows an error where it belongs: a click marks its place.
  const say = (error) => {
    const at = /^(\d+):(\d+): ([^]*)$/.exec(error), inRule = at && !el.rule.disabled;
    const column = inRule && (+at[1] === row ? Math.min(+at[2] - before, el.rule.value.length + 1) : el.rule.value.length + 1);
    problem.replaceChildren(...(error ? [html("button", { type: "button", textContent: inRule ? `column ${column}: ${at[3]}` : error,
      onclick: () => { if (at) inRule ? mark(el.rule, 1, column) : mark(el.hand, +at[1], +at[2]); } })] : []));
    el.rule.ariaInvalid = String(!!inRule);
    el.hand.ariaInvalid = String(!!error && !inRule);
  };

  const check = async () => {
    const text = el.hand.value;
    let name = "", error = "";
    const slow = setTimeout(() => { problem.textContent = "loading what reads Go ..."; }, 300);
    try { name = await ask(live.recording, "hand", { hand: text }, { key: "hand", front: true }); } catch (err) { error = err.message; }
    clearTimeout(slow);
    if (text !== el.hand.value) return;
    say(error);
    if (!error) change({ hand: { text, name, on: el.handed.checked } }, "hand");
  };
  const soon = () => { clearTimeout(wait); wait = setTimeout(check, 300); };
  el.rule.oninput = () => { el.hand.value = live.written(el.rule.value); el.handed.checked = true; soon(); };
  el.hand.oninput = () => { live.put(el.hand.value, true); soon(); };
  el.again.onclick = () => { live.put(undefined, el.handed.checked); check(); el.rule.focus(); };
  el.handed.onchange = check;
  el.hand.onkeydown = (e) => { // a tab indents; Escape first lets it leave the field
    if (e.key === "Escape") el.hand.dataset.leave = "1";
    else if (e.key === "Tab" && !e.shiftKey && !el.hand.dataset.leave) { e.preventDefault(); el.hand.setRangeText("\t", el.hand.selectionStart, el.hand.selectionEnd, "end"); el.hand.oninput(); }
    else delete el.hand.dataset.leave;
  };
  el.copy.onclick = () => copy(el.hand.value, lines);
};

// mark selects what a problem begins at, to the end of its line.
const mark = (area, row, column) => {
  const before = area.value.split("\n").slice(0, row - 1).join("\n").length + (row > 1 ? 1 : 0), end = (area.value + "\n").indexOf("\n", before);
  area.closest("details").open = true;
  area.focus();
  area.setSelectionRange(Math.min(before + column - 1, end), end);
};
