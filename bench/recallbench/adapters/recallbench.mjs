// recallbench protocol 1 for JavaScript: JSON lines on standard input and output. No packages; Node 18 or later.
// Types and documentation: recallbench.d.mts. console.log and everything else that is printed goes to standard error.

import { writeSync } from "node:fs";

export const PROTOCOL = 1;

export function serve(system) {
  const answers = takeStandardOutput();
  const waiting = new Map(); // calls of ours that the harness has not answered yet: id -> {resolve, reject}
  let calls = 0;

  const send = (message) => answers(JSON.stringify(message) + "\n");
  const embed = (texts) =>
    new Promise((resolve, reject) => {
      const id = `e${(calls += 1)}`;
      waiting.set(id, { resolve, reject });
      send({ id, op: "embed", texts });
    });
  const context = { embed };

  const operations = {
    hello: async ({ protocol }) => {
      if (protocol !== PROTOCOL) throw new Error(`this adapter speaks protocol ${PROTOCOL}, not ${protocol}`);
      const capabilities = system.capabilities ?? ["search", "inject", "scenario"].filter((name) => system[name]);
      return { protocol: PROTOCOL, name: system.name, version: system.version ?? "", capabilities, ...capacity(system) };
    },
    reset: async ({ corpus }) => void (await system.reset?.(corpus, context)),
    index: async ({ memories }) => ids(await system.index?.(memories, context)),
    index_done: async () => ids(await system.indexDone?.(context)),
    search: async ({ question, top_k }) => hits(await system.search(question, top_k, context)),
    inject: async ({ question, top_k }) => hits(await system.inject(question, top_k, context)),
  };
  // A scenario goes to the system whole where it has a method for it; its searches any system can answer.
  const asked = (message) => [{ id: "probe", text: message.query ?? "" }, message.top_k ?? 5, context];
  const value = (found) => {
    const rows = hits(found).hits;
    return { value: { ids: rows.map((hit) => String(hit.id)), scores: rows.map((hit) => hit.score ?? null) } };
  };
  const own = {
    scenario: async ({ given }) => {
      await system.reset?.("main", context);
      await system.configure?.(given.config ?? {}, context);
      await system.index?.(given.memories ?? [], context);
      await system.indexDone?.(context);
    },
    probe: async (message) => {
      if (!(message.probe in SEARCHES) || !system[message.probe]) throw new Error(`no probe ${message.probe}`);
      return value(await system[message.probe](...asked(message)));
    },
    scenario_end: async () => {},
  };
  for (const op of ["scenario", "event", "advance", "fault", "call", "probe", "scenario_end"]) {
    if (system.scenario) operations[op] = async (message) => ({ value: await system.scenario(message, context) });
    else if (own[op]) operations[op] = own[op];
  }
  for (const op of Object.keys(SEARCHES)) if (!system[op]) delete operations[op];

  async function answer(message) {
    const { id, op } = message;
    try {
      if (!Object.hasOwn(operations, op)) throw new Error(`no operation ${op}`);
      send({ id, ...((await operations[op](message)) ?? {}) });
    } catch (error) {
      console.error(error);
      send({ id, error: String(error?.message ?? error) });
    }
  }

  // Memories and events must be taken in order; questions may overlap.
  let last = Promise.resolve();
  function take(line) {
    const message = JSON.parse(line);
    if (message.op === undefined) {
      const call = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error !== undefined) call?.reject(new Error(message.error));
      else call?.resolve(message.vectors);
    } else if (message.op in SEARCHES) {
      last.then(() => answer(message));
    } else {
      last = last.then(() => answer(message));
    }
  }

  // Lines end at "\n" alone: node:readline also ends them at U+2028, which JSON may hold.
  let part = [];
  process.stdin.on("data", (chunk) => {
    let start = 0;
    for (let end; (end = chunk.indexOf(10, start)) >= 0; start = end + 1) {
      const line = Buffer.concat([...part, chunk.subarray(start, end)]).toString("utf8");
      part = [];
      if (line.trim()) take(line);
    }
    part.push(chunk.subarray(start));
  });
  // The harness is done with us: timers and sockets of the plugin must not keep the process.
  process.stdin.on("end", () => last.then(() => process.exit(0)));
}

const SEARCHES = Object.freeze({ __proto__: null, search: 1, inject: 1 });

function capacity(system) {
  return system.capacity === undefined ? {} : { capacity: system.capacity };
}

function ids(map) {
  return map === undefined || map === null ? {} : { ids: map instanceof Map ? Object.fromEntries(map) : map };
}

function hits(found) {
  return Array.isArray(found) ? { hits: found } : found;
}

/** Keeps standard output for answers and sends what anyone else prints there to standard error. */
function takeStandardOutput() {
  const toError = process.stderr.write.bind(process.stderr);
  for (const name of ["log", "info", "debug", "dir", "table"]) console[name] = (...all) => console.error(...all);
  process.stdout.write = (...all) => toError(...all);
  return (text) => {
    // Written at once and whole: a process that exits must not lose its last answer.
    const bytes = Buffer.from(text, "utf8");
    for (let done = 0; done < bytes.length; ) {
      try {
        done += writeSync(1, bytes, done);
      } catch (error) {
        if (error.code === "EPIPE") process.exit(0);
        if (error.code !== "EAGAIN") throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); // the pipe is full: the harness reads it
      }
    }
  };
}
