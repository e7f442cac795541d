/* Reads pairs of sentences with the model, batch by batch, away from the page. */

const BATCH = 8;
let session, tokenizer, ort, latest;

/* A file from the cache, else from the server, telling how much is there. */
async function file({ name, size }, folder, cacheName, loaded) {
  const address = new URL(name, folder).href;
  const cache = self.caches ? await caches.open(cacheName) : null;
  const known = cache && (await cache.match(address));
  if (known) {
    loaded(size);
    return known.arrayBuffer();
  }
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  const reader = answer.body.getReader();
  const parts = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    loaded(part.value.length);
  }
  const whole = new Blob(parts);
  if (whole.size !== size) throw new Error(`${name}: ${whole.size} of ${size} bytes`);
  if (cache) await cache.put(address, new Response(whole)).catch(() => {});
  return whole.arrayBuffer();
}

async function start({ files, folder, cacheName }) {
  const total = files.reduce((sum, one) => sum + one.size, 0);
  let there = 0;
  const loaded = (bytes) => {
    there += bytes;
    postMessage({ kind: "loading", share: there / total });
  };
  if (self.caches) {
    for (const name of await caches.keys()) {
      if (name.startsWith("ask-a-model-") && name !== cacheName) await caches.delete(name);
    }
  }
  const got = {};
  for (const one of files) got[one.name] = await file(one, folder, cacheName, loaded);
  const script = (name) => URL.createObjectURL(new Blob([got[name]], { type: "text/javascript" }));
  ort = await import(script("ort.wasm.min.mjs"));
  ort.env.wasm.wasmPaths = { mjs: script("ort-wasm-simd-threaded.mjs") };
  ort.env.wasm.wasmBinary = got["ort-wasm-simd-threaded.wasm"];
  const { Tokenizer } = await import(script("tokenizers.min.mjs"));
  tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(got["tokenizer.json"])), {});
  const model = files.find((one) => one.name.endsWith(".onnx")).name;
  session = await ort.InferenceSession.create(new Uint8Array(got[model]));
  postMessage({ kind: "ready" });
}

/* Token ids of a pair; where it is too long the longer side loses its end, as in Python. */
function encoded([premise, hypothesis], longest) {
  const [cls, sep] = ["[CLS]", "[SEP]"].map((one) => tokenizer.token_to_id(one));
  const sides = [premise, hypothesis].map(
    (text) => tokenizer.encode(text, { add_special_tokens: false }).ids,
  );
  const cut = sides[0].length + sides[1].length > longest - 3;
  while (sides[0].length + sides[1].length > longest - 3) {
    sides[sides[0].length > sides[1].length ? 0 : 1].pop();
  }
  const ids = [cls, ...sides[0], sep, ...sides[1], sep];
  return { ids, first: sides[0].length + 2, cut };
}

async function run(rows, texts, trained) {
  const width = Math.max(...rows.map((row) => texts[row].ids.length));
  const tensor = (value) => {
    const cells = new BigInt64Array(rows.length * width);
    rows.forEach((row, i) =>
      texts[row].ids.forEach((id, j) => (cells[i * width + j] = BigInt(value(id, j, texts[row])))),
    );
    return new ort.Tensor("int64", cells, [rows.length, width]);
  };
  return session.run({
    ids: tensor((id) => id),
    kinds: tensor((_, place, text) => (place < text.first ? 0 : 1)),
    mask: tensor(() => 1),
    trained: new ort.Tensor("float32", [trained], []),
  });
}

/* First the answers of the trained model, then the vectors of its untouched base. */
async function ask({ id, pairs, longest }) {
  latest = id;
  const texts = pairs.map((pair) => encoded(pair, longest));
  const order = texts.map((_, i) => i).sort((a, b) => texts[a].ids.length - texts[b].ids.length);
  for (const trained of [1, 0]) {
    for (let from = 0; from < order.length; from += BATCH) {
      await new Promise((next) => setTimeout(next)); // lets a newer question in
      if (latest !== id) return;
      const rows = order.slice(from, from + BATCH);
      const { probabilities, first } = await run(rows, texts, trained);
      const width = trained ? 3 : first.dims[1];
      const found = (trained ? probabilities : first).data;
      const values = rows.map((_, i) => Array.from(found.subarray(i * width, (i + 1) * width)));
      postMessage({ kind: trained ? "answers" : "vectors", id, rows, values });
    }
  }
  postMessage({ kind: "done", id, cut: texts.filter((one) => one.cut).length });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data);
    else if (data.kind === "ask") await ask(data);
    else latest = undefined;
  } catch (error) {
    postMessage({ kind: "failed", text: String((error && error.message) || error) });
  }
};
