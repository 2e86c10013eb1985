// A report with the simulator inside: the dials of a recording come alive when its
// part is opened.
for (const section of document.querySelectorAll(".recording")) {
  let awake = false;
  const wake = async () => {
    if (awake || !section.open) return;
    awake = true;
    const recording = { name: section.querySelector("summary").firstChild.textContent, file: new Blob([await part("recording-" + section.querySelector(".memory").dataset.recording)]) };
    try {
      await begin();
      recording.info = await ask(recording, "load", {});
      liven(section).use(recording, JSON.parse(section.dataset.state));
    } catch (err) {
      section.querySelector(".dials > .problem").textContent = err.message;
    }
  };
  section.addEventListener("toggle", wake);
  wake();
}
