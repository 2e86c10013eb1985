// A policy of the reader's own: a rule, which is an expression of Go. It runs beside the
// others, what is wrong with it is said below it, and it can be copied as a program.
const ruling = (live, form, change, lines) => {
  const el = form.elements, problem = form.querySelector(".rule .problem");
  const [, head, standard, tail] = /^([^]*?\n\treturn )(.*)(\n[^]*)$/.exec(form.querySelector(".rule template").content.textContent);
  let wait;

  live.put = (rule = standard, on = false) => {
    el.rule.value = rule;
    el.ruled.checked = on;
    say("");
  };

  // say shows an error: a click marks its place.
  const say = (error) => {
    const at = /^(\d+): ([^]*)$/.exec(error);
    problem.replaceChildren(...(error ? [html("button", { type: "button", textContent: at ? `column ${at[1]}: ${at[2]}` : error,
      onclick: () => { if (at) { el.rule.focus(); el.rule.setSelectionRange(at[1] - 1, el.rule.value.length); } } })] : []));
    el.rule.ariaInvalid = String(!!error);
  };

  const check = async () => {
    const text = el.rule.value;
    let error = "";
    try { await ask(live.recording, "rule", { rule: text }, { key: "rule", front: true }); } catch (err) { error = err.message; }
    if (text !== el.rule.value) return;
    say(error);
    if (!error) change({ rule: { text, on: el.ruled.checked } }, "rule");
  };
  el.rule.oninput = () => { el.ruled.checked = true; clearTimeout(wait); wait = setTimeout(check, 300); };
  el.ruled.onchange = check;
  el.copy.onclick = () => copy(head + el.rule.value.replaceAll("\n", " ") + tail, lines);
};
