// A memory plugin under recallbench: words and vectors, fused by reciprocal rank.
//   recallbench run --dataset mneme-memories --system "stdio:node examples/javascript/plugin.mjs"
// In your own project: `recallbench systems adapter javascript` puts recallbench.mjs beside your plugin.

import { serve } from "../../bench/recallbench/adapters/recallbench.mjs";

const K = 60;
let memories = [];
let settings = {};

// Words of letters and digits; a run of Chinese characters is cut into pairs, as it has no spaces.
const words = (text) =>
  (text.toLowerCase().match(/[\p{Script=Han}]+|[\p{L}\p{N}_]+/gu) ?? []).flatMap((word) =>
    /^\p{Script=Han}{2,}$/u.test(word) ? [...word].slice(1).map((next, i) => [...word][i] + next) : [word],
  );

// BM25 (Robertson and Zaragoza 2009) with k1 = 1.2, b = 0.75.
function bm25(query) {
  const mean = memories.reduce((sum, one) => sum + one.words.length, 0) / Math.max(memories.length, 1);
  const scores = memories.map(() => 0);
  for (const term of new Set(words(query))) {
    const counts = memories.map((one) => one.words.filter((word) => word === term).length);
    const holding = counts.filter((count) => count > 0).length;
    const idf = Math.log(1 + (memories.length - holding + 0.5) / (holding + 0.5));
    counts.forEach((count, i) => {
      scores[i] += (idf * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * memories[i].words.length) / mean));
    });
  }
  return scores;
}

const cosine = (a, b) => (a && b ? a.reduce((s, x, i) => s + x * b[i], 0) / (Math.hypot(...a) * Math.hypot(...b)) : 0);
const merge = (first, scores) => {
  const seen = new Set(first.map(([, i]) => i));
  return [...first, ...ranking(scores).filter(([, i]) => !seen.has(i))];
};
const ranking = (scores) => scores.map((s, i) => [s, i]).filter(([s]) => s > 0).sort((a, b) => b[0] - a[0] || a[1] - b[1]);

serve({
  name: "example-js",
  version: "1.0",
  capabilities: ["search", "vectors"],
  reset: () => void ((memories = []), (settings = {})),
  configure: (config) => void (settings = config),
  index(block) {
    for (const one of block) {
      const text = `${one.title ?? ""} ${one.content ?? ""}`.trim();
      memories.push({ id: one.id, text, words: words(text) });
    }
  },
  async search(question, topK, { embed }) {
    const texts = [question.text, ...memories.map((one) => one.text)];
    const [query, ...vectors] = await embed(texts).catch(() => []); // outside scenarios there are none
    const lists = { vector: ranking(vectors.map((one) => cosine(query, one))), bm25: ranking(bm25(question.text)) };
    const fused = memories.map(() => 0);
    for (const list of Object.values(lists)) {
      list.forEach(([, i], place) => (fused[i] += 1 / ((settings.k ?? K) + place + 1)));
    }
    // What holds the question as it stands: alone in mode keyword, in front in the old recipe `blend`.
    const held = ranking(memories.map((one) => (one.text.toLowerCase().includes(question.text.toLowerCase()) ? 1 : 0)));
    const rows = settings.mode === "keyword" ? held : settings.recipe === "blend" ? merge(held, fused) : ranking(fused);
    const hits = rows.slice(0, topK).map(([score, i]) => ({ id: memories[i].id, score }));
    return { hits, trace: { bm25: lists.bm25.map(([, i]) => memories[i].id) } };
  },
});
