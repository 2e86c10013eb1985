// The lab: a recording comes in by drop, by choice or from the samples, and its part
// of the page comes alive.
const loading = document.getElementById("loading");
const section = document.querySelector(".recording");
const lab = globalThis.lab = liven(section); // for tests too, and for who looks behind the page
lab.onstate = () => history.replaceState(null, "", "#" + linkOf(lab));
const say = (text, done) => {
  delete loading.dataset.state;
  loading.replaceChildren(text, ...(done === undefined ? [] : [html("progress", { max: 1, value: done, ariaLabel: text })]));
};
const fail = (err) => { say(err.message); loading.dataset.state = "error"; };
let current;

// recordingOf makes a recording of files of one run.
const recordingOf = (files, more) => ({ name: files.map((f) => f.name).join(" with "), files, ...more });

const read = async (recording) => {
  recording.progress = (done, of) => { if (!recording.info) say(`reading ${recording.name}: ${Math.round(100 * done / of)} % of ${bytes(of)}`, done / (of || 1)); };
  say(`reading ${recording.name} ...`, 0);
  await begin();
  recording.info = await ask(recording, "load", {}, { key: "load", front: true });
};

// open reads a recording and shows it. Where it or the one read before is waits alone, and
// the other has none, they may be the profile and the snapshot of one run, and are joined.
let lastRead;
const open = async (recording, state, seen) => {
  const lacks = (r) => !r.sample && r.info?.syncs === 0;
  try {
    await read(recording).catch((err) => {
      if (!/no allocations in it/.test(err.message)) throw err;
      recording.waitsOnly = err;
    });
    const before = lastRead; // it may have come while this one was read
    lastRead = recording;
    if (before && (recording.waitsOnly && lacks(before) || before.waitsOnly && lacks(recording))) {
      const both = recordingOf([...before.files, ...recording.files]);
      await read(both).then(() => { recording = lastRead = both; }, (err) => { if (recording.waitsOnly) throw err; });
    }
    if (recording.waitsOnly) throw recording.waitsOnly;
  } catch (err) {
    fail(err);
    if (err === recording.waitsOnly) loading.append(". Or drop that snapshot here, and they are joined.");
    if (/\(cut off\)$/.test(err.message) && !recording.recover) loading.append(" ", html("button", { type: "button", textContent: "take what is whole", onclick: () => open({ ...recording, recover: true, info: undefined }, state, seen) }));
    return;
  }
  current = recording;
  say("");
  document.body.classList.add("loaded");
  document.title = recording.info.name + " - the lab";
  section.hidden = false;
  section.open = true;
  section.querySelector("summary").firstChild.textContent = recording.info.name;
  section.querySelector("summary span").textContent = recording.sample ? "built in" : recording.name;
  section.querySelector(".about").textContent = recording.info.about;
  section.querySelector(".cards").replaceChildren();
  section.querySelector(".lines").hidden = true;
  lab.use(recording, state, seen);
};

const openSample = async (name, state, seen) => {
  try {
    await open(recordingOf([new File([await part("sample-" + name)], name)], { sample: name }), state, seen);
  } catch (err) { fail(err); }
};

const drop = document.getElementById("drop");
const openFiles = (list) => { if (list.length) open(recordingOf([...list]), current ? lab.state : {}); };
document.getElementById("file").onchange = (e) => { openFiles(e.target.files); e.target.value = ""; };
for (const b of document.querySelectorAll("[data-sample]")) b.onclick = () => openSample(b.dataset.sample, current ? lab.state : {});
// What lies under a drag may be drawn anew at any moment. A thing that has just come there
// is told by dragenter alone; one that has just gone from the page still gets the drop, which
// the window no longer hears of. So each thing that a drag meets takes both.
const take = (e) => {
  e.preventDefault();
  e.stopPropagation(); // those around it take the drop, too
  drop.classList.remove("over");
  openFiles(e.dataTransfer.files);
};
for (const met of ["dragenter", "dragover"]) addEventListener(met, (e) => {
  e.preventDefault();
  e.target.addEventListener("drop", take);
  drop.classList.add("over");
});
addEventListener("dragleave", (e) => { if (!e.relatedTarget) drop.classList.remove("over"); });
addEventListener("drop", take);

const fromLink = () => {
  const { sample: name, state, seen } = linked();
  if (name && document.querySelector(`[data-sample="${CSS.escape(name)}"]`)) openSample(name, state, seen);
  else if (current && Object.keys(state).length) lab.use(current, state, seen);
  return name;
};
addEventListener("hashchange", fromLink);
fromLink();
begin().catch(fail); // the program is ready when the first file comes
Object.assign(lab, { recordingOf, ask, part, begin, open, crew });
