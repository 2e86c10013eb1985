// The simulator's worker: it starts the program, then answers one question after
// another. Go's wasm_exec.js stands before it.
const go = new Go();

// start compiles the program, unless another worker has.
const start = async (program) => {
  const unpacked = () => new Response(new Blob([program]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const module = program instanceof WebAssembly.Module ? program : await WebAssembly.compile(await unpacked());
  go.run(await WebAssembly.instantiate(module, go.importObject));
  return module;
};

// slices reads files piece by piece, and says how far it is.
const slices = (id, files) => {
  const reader = new FileReaderSync(), of = files.reduce((sum, f) => sum + f.size, 0);
  let said = 0, before = 0;
  return files.map((file) => {
    const first = before;
    before += file.size;
    return (at, into) => {
      if (performance.now() - said > 50) {
        said = performance.now();
        postMessage({ id, done: first + at, of });
      }
      const bytes = new Uint8Array(reader.readAsArrayBuffer(file.slice(at, at + into.length)));
      into.set(bytes);
      return bytes.length;
    };
  });
};

onmessage = async ({ data: { id, program, op, args, files } }) => {
  try {
    if (program) postMessage({ id, answer: await start(program) });
    else {
      const began = performance.now(), progress = (done) => postMessage({ id, done, of: 1 });
      const out = eagergc(op, JSON.stringify(args ?? {}), files && slices(id, files), progress);
      postMessage({ id, ...out, took: performance.now() - began, held: go._inst.exports.mem.buffer.byteLength });
    }
  } catch (err) {
    postMessage({ id, error: String(err) });
  }
};
