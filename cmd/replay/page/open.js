// The lab: a recording comes in by drop, by choice or from the samples, and its part
// of the page comes alive.
const loading = document.getElementById("loading");
const section = document.querySelector(".recording");
const lab = globalThis.lab = liven(section); // for tests too, and for who looks behind the page
lab.onstate = () => history.replaceState(null, "", "#" + linkOf(lab));
let current;

const open = async (recording, state) => {
  const fraction = (done, of) => { loading.textContent = `reading ${recording.name}: ${Math.round(100 * done / of)} % of ${bytes(of)}`; };
  recording.progress = (done, of) => { if (!recording.info) fraction(done, of); };
  loading.textContent = `reading ${recording.name} ...`;
  document.querySelector("#drop").classList.remove("over");
  try {
    await begin();
    recording.info = await ask(recording, "load", {}, { key: "load", front: true });
  } catch (err) {
    loading.textContent = err.message;
    loading.dataset.state = "error";
    if (/\(cut off\)$/.test(err.message) && !recording.recover) loading.append(" ", html("button", { type: "button", textContent: "take what is whole", onclick: () => open({ ...recording, recover: true, info: undefined }, state) }));
    return;
  }
  current = recording;
  delete loading.dataset.state;
  loading.textContent = "";
  section.hidden = false;
  section.open = true;
  section.querySelector("summary").firstChild.textContent = recording.info.name;
  section.querySelector("summary span").textContent = recording.name;
  section.querySelector(".about").textContent = recording.info.about;
  section.querySelector(".advice").replaceChildren();
  section.querySelector(".lines").hidden = true;
  lab.use(recording, state);
};

const openSample = async (name, state) => open({ name, sample: name, file: new Blob([await part("sample-" + name)]) }, state);

const drop = document.getElementById("drop");
document.getElementById("file").onchange = (e) => { const f = e.target.files[0]; if (f) open({ name: f.name, file: f }, current ? lab.state : {}); e.target.value = ""; };
for (const b of document.querySelectorAll("[data-sample]")) b.onclick = () => openSample(b.dataset.sample, current ? lab.state : {});
addEventListener("dragover", (e) => { e.preventDefault(); drop.classList.add("over"); });
addEventListener("dragleave", (e) => { if (!e.relatedTarget) drop.classList.remove("over"); });
addEventListener("drop", (e) => {
  e.preventDefault();
  drop.classList.remove("over");
  const f = e.dataTransfer.files[0];
  if (f) open({ name: f.name, file: f }, current ? lab.state : {});
});

const fromLink = () => {
  const { sample: name, state } = linked();
  if (name && document.querySelector(`[data-sample="${CSS.escape(name)}"]`)) openSample(name, state);
  else if (current && Object.keys(state).length) lab.use(current, state);
  return name;
};
addEventListener("hashchange", fromLink);
fromLink();
begin(); // the program is ready when the first file comes
Object.assign(lab, { ask, part, begin, open });
