// The simulator in the page: some workers, each with the program, and a queue of
// questions. A worker reads a recording when the first question about it comes.
const part = async (name) => {
  const here = document.getElementById("part-" + name);
  if (here) return decoded(JSON.parse(here.textContent));
  const answer = await fetch("parts/" + name).catch(() => {});
  if (!answer?.ok) throw new Error(`lab: ${name} is not served any more: start replay lab again`);
  return new Uint8Array(await answer.arrayBuffer());
};

// Files above this are read by one worker alone.
const large = 256 << 20;

const crew = [];
const queue = []; // questions that wait, the next one first
let program, script; // the program is packed, and compiled once a worker has done that

// hire makes worker k.
const hire = async (k) => {
  script ??= URL.createObjectURL(new Blob([JSON.parse(document.getElementById("part-worker").textContent)], { type: "text/javascript" }));
  program ??= part("program");
  const worker = new Worker(script), member = { k, worker, busy: true, holds: null, waiting: new Map(), next: 0 };
  crew[k] = member;
  worker.onmessage = ({ data }) => {
    const w = member.waiting.get(data.id);
    if ("done" in data) { w.progress?.(data.done, data.of); return; }
    member.waiting.delete(data.id);
    data.error ? w.reject(new Error(data.error)) : w.resolve(data);
  };
  worker.onerror = (e) => { for (const w of member.waiting.values()) w.reject(new Error(e.message || "the worker failed")); };
  const { answer } = await post(member, { program: await program });
  program = answer; // the others need not compile it
  return member;
};

const post = (m, message, progress) => new Promise((resolve, reject) => {
  const id = m.next++;
  m.waiting.set(id, { resolve, reject, progress });
  m.worker.postMessage({ ...message, id });
});

// call asks one worker and returns its answer, or throws its error.
const call = async (m, op, args, files, progress) => {
  const { answer, took, held } = await post(m, { op, args, files }, progress);
  lastTook = took;
  m.held = held; // bytes of memory
  return answer;
};
let lastTook = 0; // ms that the last answer took in its worker

// ask puts a question about a recording to the first worker that is free. A question
// with a key replaces one with that key that still waits, whose promise
// is then never kept. Questions in front go before the others. While a worker answers, it
// calls progress with the share that is done.
const ask = (recording, op, args, { key, front, progress } = {}) => new Promise((resolve, reject) => {
  if (key) for (let i = queue.length; i-- > 0;) if (queue[i].key === key) queue.splice(i, 1);
  const q = { recording, op, args, key, progress, resolve, reject };
  front ? queue.unshift(q) : queue.push(q);
  serve();
});

const serve = () => {
  for (const m of crew) {
    if (!m || m.busy) continue;
    const i = queue.findIndex((q) => m.k === 0 || q.recording.files.reduce((sum, f) => sum + f.size, 0) < large);
    if (i < 0) continue;
    const [q] = queue.splice(i, 1);
    m.busy = true;
    reply(m, q);
  }
};

const reply = async (m, { recording, op, args, progress, resolve, reject }) => {
  try {
    if (m.holds !== recording) {
      m.holds = null;
      const info = await call(m, "load", { names: recording.files.map((f) => f.name), recover: !!recording.recover }, recording.files, recording.progress);
      m.holds = recording;
      if (op === "load") { resolve(info); return; }
    }
    resolve(await call(m, op === "load" ? "info" : op, args, undefined, progress));
  } catch (err) {
    reject(err);
  } finally {
    m.busy = false;
    serve();
  }
};

// begin starts the first worker, and the others once it runs.
let begun;
const begin = () => begun ??= (async () => {
  const free = (m) => { m.busy = false; serve(); };
  free(await hire(0));
  for (let k = 1; k < Math.min(4, navigator.hardwareConcurrency || 1); k++) hire(k).then(free);
})();
