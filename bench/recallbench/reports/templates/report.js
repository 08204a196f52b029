// The page: language, theme, charts, and the table of questions. All data lies packed inside the file; every text of
// others is set as text, never as HTML.
"use strict";
(() => {
  const root = document.documentElement;
  const $ = (selector, from) => (from || document).querySelector(selector);
  const $$ = (selector, from) => [...(from || document).querySelectorAll(selector)];
  const store = {
    get(key) { try { return localStorage.getItem("recallbench." + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("recallbench." + key, value); } catch { /* a file without storage */ } },
  };
  const lang = () => root.dataset.lang;
  let words = {};
  const say = (key, values) => {
    const text = (words[key] || [key, key])[lang() === "zh" ? 1 : 0];
    return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole)) : text;
  };
  const outcomeName = (name) => (words["outcome." + name] ? say("outcome." + name) : visible(name));

  // The same rule as `recallbench.reports.safe.visible`.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]/g;
  const PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;
  const code = (one) => "[U+" + one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "]";
  const visible = (text) => {
    let out = "", from = 0;
    for (const pair of text.matchAll(PAIRS)) { // whole characters beyond the first plane stay as they are
      out += text.slice(from, pair.index).replace(UNSEEN, code) + pair[0];
      from = pair.index + 2;
    }
    return out + text.slice(from).replace(UNSEEN, code);
  };
  const clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  const h = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "value") node.value = value;
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((one) => one !== null && one !== undefined && one !== ""));
    return node;
  };

  async function unpack(id) {
    const bytes = Uint8Array.from(atob($("#" + id).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
  const kept = {};
  const unpackJson = (id) => (kept[id] ??= unpack(id).then(JSON.parse));

  // Language and theme
  function setLang(name) {
    root.lang = name;
    root.dataset.lang = name;
    for (const one of $$("[data-set-lang]")) one.setAttribute("aria-pressed", String(one.dataset.setLang === name));
    for (const one of $$("[data-label-en]")) one.setAttribute("aria-label", one.getAttribute("data-label-" + name));
    for (const one of $$("option[data-en]")) one.textContent = one.getAttribute("data-" + name);
    store.set("lang", name);
  }
  const dark = () => getComputedStyle(root).colorScheme.includes("dark");
  function setTheme(name) {
    root.dataset.theme = name;
    $("[data-set-theme]").value = name;
    store.set("theme", name);
  }

  // Charts
  let library = null;
  function vega() {
    library ??= unpack("library").then((text) => {
      const script = document.createElement("script");
      script.textContent = text;
      document.head.append(script);
    });
    return library;
  }
  function chartTheme() {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue("--" + name).trim();
    const axis = { labelColor: of("soft"), titleColor: of("ink"), gridColor: of("line"), domainColor: of("strong"), tickColor: of("strong") };
    return {
      background: "transparent", font: of("sans").split(",")[0] === "system-ui" ? "system-ui, sans-serif" : "sans-serif",
      axis: { ...axis, labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal" },
      legend: { labelColor: of("ink"), titleColor: of("ink"), labelFontSize: 12, labelLimit: 300 },
      text: { color: of("ink") }, view: { stroke: null },
    };
  }
  // On a phone: legends below each other, fewer ticks, shorter names.
  function compact(value) {
    if (!value || typeof value !== "object") return;
    if (value.legend) value.legend.columns = 1;
    if (value.axis) {
      if (value.axis.tickCount) value.axis.tickCount = 4;
      if (value.axis.labelLimit) value.axis.labelLimit = 150;
    }
    for (const [key, inner] of Object.entries(value)) if (key !== "data") compact(inner);
  }
  const views = new Map();
  async function draw(node, spec) {
    await vega();
    if (!spec) return;
    const narrow = node.clientWidth < 480;
    const config = chartTheme();
    const own = structuredClone(spec);
    if (narrow) compact(own);
    const drawn = await window.vegaEmbed(node, own, {
      actions: false, renderer: "svg", config, tooltip: { theme: dark() ? "dark" : "light" },
    });
    $("svg", node).setAttribute("aria-hidden", "true"); // the place itself says what it is
    views.get(node)?.finalize();
    views.set(node, drawn);
  }
  async function drawSection(section) {
    const number = section.dataset.section;
    const specs = (await unpackJson("charts-" + number))[lang()];
    for (const node of $$("[data-chart]", section)) {
      const id = node.dataset.chart;
      const select = id.startsWith("waterfall-") && $(`[data-waterfall="${id.slice(10)}"]`, section);
      await draw(node, select ? specs.waterfalls[Number(select.value)] : specs[id]);
    }
  }

  // The table of questions
  const PAGE = 50;
  const phone = matchMedia("(max-width: 640px)"); // as in the style: three columns fewer
  const starts = (counts) => { let sum = 0; return [0, ...counts.map((one) => (sum += one))]; };

  class Questions {
    constructor(place, data, number) {
      Object.assign(this, { place, d: data, number, page: 0, open: new Set(), sort: "delta", down: false });
      this.measure = 0;
      this.first = data.systems.indexOf(data.first);
      this.second = data.systems.indexOf(data.second);
      this.labelStart = starts(data.ln);
      this.unionStart = starts(data.un);
      this.listStart = new Map();
      let at = 0;
      this.traceStart = data.ln.map((count, q) => {
        const from = at;
        for (let i = this.labelStart[q]; i < this.labelStart[q] + count; i++) if (data.lg[i] > 0) at += 1;
        return from;
      });
      this.failed = data.failed.map((one) => new Set(one));
      this.empty = new Set(data.empty);
      this.filter = { text: "", category: "", lang: "", change: "" };
      this.build();
    }

    value(q, system) { return this.d.v[this.d.vi[system][this.measure]][q]; }
    delta(q) {
      const a = this.value(q, this.first), b = this.value(q, this.second);
      if (typeof a !== "number" || typeof b !== "number") return null;
      return (this.d.higher[this.measure] ? 1 : -1) * (a - b);
    }
    lost(q, system) {
      const column = this.d.lost[system], out = [];
      if (column < 0) return out;
      let at = this.traceStart[q];
      for (let i = this.labelStart[q]; i < this.labelStart[q + 1]; i++) {
        if (this.d.lg[i] <= 0) continue;
        const code = this.d.tc[column][at++];
        if (code >= 0) out.push([i, this.d.outcomes[code]]);
      }
      return out;
    }
    firstLoss(q) {
      const name = this.lost(q, this.first).map((one) => one[1]).find((one) => one !== "kept");
      return name === undefined ? "" : name;
    }
    // What the change came from: the stage that lost a memory, or the ranks of the one that stood highest before.
    reason(q) {
      const loss = this.firstLoss(q);
      if (loss) return outcomeName(loss);
      if (!this.delta(q)) return "";
      const wanted = new Set();
      for (let i = this.labelStart[q]; i < this.labelStart[q + 1]; i++) if (this.d.lg[i] >= this.d.rel) wanted.add(this.d.lm[i]);
      const now = this.list(q, this.first).memories, before = this.list(q, this.second).memories;
      const at = before.findIndex((one) => wanted.has(one)), then = now.indexOf(before[at]);
      return at < 0 || then < 0 || at === then ? "" : say("q.moved", { then: at + 1, now: then + 1 });
    }
    list(q, system) {
      const [flat, lengths, more] = this.d.li[system].map((one) => this.d.lists[one]);
      if (!this.listStart.has(system)) this.listStart.set(system, starts(lengths));
      const from = this.listStart.get(system)[q];
      const memories = flat.slice(from, from + lengths[q]).map((one) => this.d.um[this.unionStart[q] + one]);
      return { memories, more: more[q] };
    }
    words(q) {
      this.haystack ??= this.d.id.map((id, one) =>
        [id, ...this.d.cats[one].map((c) => this.d.categories[c]), this.d.text ? this.d.text[one] : ""].join("\n").toLowerCase());
      return this.haystack[q];
    }

    rows() {
      const { text, category, lang: language, change } = this.filter;
      const wanted = text.trim().toLowerCase();
      const out = [];
      for (let q = 0; q < this.d.id.length; q++) {
        if (category !== "" && !this.d.cats[q].includes(Number(category))) continue;
        if (language !== "" && this.d.lang[q] !== Number(language)) continue;
        if (change !== "") {
          const delta = this.delta(q);
          if (change === "worse" && !(delta < 0)) continue;
          if (change === "better" && !(delta > 0)) continue;
          if (change === "differ" && !delta) continue;
          if (change === "lost" && !this.firstLoss(q)) continue;
        }
        if (wanted && !this.words(q).includes(wanted)) continue;
        out.push(q);
      }
      const keys = {
        id: (q) => this.d.id[q], cats: (q) => (this.d.cats[q].length ? this.d.categories[this.d.cats[q][0]] : ""),
        lang: (q) => this.d.langs[this.d.lang[q]], a: (q) => this.value(q, this.first), b: (q) => this.value(q, this.second),
        delta: (q) => this.delta(q), lost: (q) => this.firstLoss(q),
      };
      const key = keys[this.sort], sign = this.down ? -1 : 1;
      const none = (one) => one === null || one === "" || one === undefined;
      const compared = out.map((q) => [key(q), q]);
      compared.sort(([a, p], [b, q]) => {
        if (none(a) || none(b)) return none(a) - none(b) || p - q; // unknown ones last, whichever way
        if (a === b) return p - q;
        return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1);
      });
      return compared.map((one) => one[1]);
    }

    select(label, options, value, change, short) {
      const node = h("select", { class: short ? "short" : null, onchange: () => { change(node.value); this.page = 0; this.show(); } },
        ...options.map(([v, name]) => h("option", { value: v, selected: String(v) === String(value) }, clip(name, 60))));
      return h("label", {}, label, node);
    }
    build() {
      const d = this.d;
      const systems = d.systems.map((name, i) => [i, visible(name)]);
      const all = [["", say("q.all")]];
      const search = h("input", { type: "search", value: this.filter.text, placeholder: say("q.search.hint"),
        oninput: () => { this.filter.text = search.value; this.page = 0; this.show(); } });
      const set = (key) => (value) => { this.filter[key] = value; };
      this.place.replaceChildren(
        h("p", { class: "note" }, say("q.note", { measure: d.measures[this.measure] })),
        h("div", { class: "filters" },
          this.select(say("q.first"), systems, this.first, (v) => { this.first = Number(v); }),
          this.select(say("q.second"), systems, this.second, (v) => { this.second = Number(v); }),
          this.select(say("q.measure"), d.measures.map((name, i) => [i, visible(name)]), this.measure, (v) => { this.measure = Number(v); }, true),
          this.select(say("q.change"), [...all, ...["worse", "better", "differ", "lost"].map((one) => [one, say("q." + one)])], this.filter.change, set("change"), true),
          d.categories.length ? this.select(say("q.category"), [...all, ...d.categories.map((name, i) => [i, visible(name)])], this.filter.category, set("category"), true) : null,
          d.langs.length > 1 ? this.select(say("q.lang"), [...all, ...d.langs.map((name, i) => [i, visible(name) || "–"])], this.filter.lang, set("lang"), true) : null,
          h("label", {}, say("q.search"), search),
          h("button", { type: "button", onclick: () => { this.reset(); this.build(); } }, say("q.reset"))),
        (this.table = h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": say("q.table") })),
        (this.pager = h("div", { class: "pager" })));
      this.show();
    }
    reset() {
      this.filter = { text: "", category: "", lang: "", change: "" };
      Object.assign(this, { page: 0, sort: "delta", down: false });
      this.open.clear();
    }

    head(key, name, extra) {
      const sorted = this.sort === key ? (this.down ? "descending" : "ascending") : null;
      const arrow = sorted ? (this.down ? " ↓" : " ↑") : "";
      return h("th", { scope: "col", "aria-sort": sorted, class: extra || null },
        h("button", { type: "button", "data-sort": key, onclick: () => {
          this.down = this.sort === key && !this.down;
          this.sort = key;
          this.page = 0;
          this.show();
          $(`[data-sort="${key}"]`, this.table).focus();
        } }, clip(name, 40) + arrow));
    }
    show() {
      const d = this.d, rows = this.rows(), pages = Math.max(1, Math.ceil(rows.length / PAGE));
      this.page = Math.min(this.page, pages - 1);
      const from = this.page * PAGE, shown = rows.slice(from, from + PAGE);
      const body = h("tbody");
      for (const q of shown) {
        body.append(this.row(q));
        if (this.open.has(q)) body.append(this.detail(q));
      }
      this.table.replaceChildren(h("table", { class: "questions" },
        h("thead", {}, h("tr", {}, this.head("id", say("q.question")), this.head("cats", say("q.categories"), "extra left"),
          this.head("lang", say("q.langs"), "extra left"), this.head("a", visible(d.systems[this.first])),
          this.head("b", visible(d.systems[this.second])), this.head("delta", say("q.delta")), this.head("lost", say("q.outcome"), "extra left"))),
        body));
      const turn = (by) => () => { this.page += by; this.show(); this.table.scrollIntoView({ block: "nearest" }); };
      this.pager.replaceChildren(
        h("button", { type: "button", disabled: this.page === 0, onclick: turn(-1) }, say("q.previous")),
        h("button", { type: "button", disabled: this.page >= pages - 1, onclick: turn(1) }, say("q.next")),
        h("span", { role: "status" }, rows.length ? say("q.shown", { from: from + 1, to: from + shown.length, n: rows.length }) : say("q.nothing")));
    }
    written(value, signed) {
      if (value === null) return "–";
      if (typeof value !== "number") return value;
      const text = Math.abs(value) >= 100 ? Math.abs(value).toFixed(0) : Math.abs(value).toFixed(3);
      if (Number(text) === 0) return text;
      return (value < 0 ? "−" : signed ? "+" : "") + text;
    }
    row(q) {
      const d = this.d, open = this.open.has(q), delta = this.delta(q), reason = this.reason(q);
      const toggle = h("button", { type: "button", class: "link", "data-question": q, "aria-expanded": String(open),
        onclick: () => this.toggle(q) }, (open ? "▾ " : "▸ ") + clip(visible(d.id[q]), 60));
      const mark = (system) => (this.failed[system].has(q) ? h("span", { class: "badge error" }, "!") : null);
      return h("tr", {},
        h("td", { class: "id" }, toggle, this.empty.has(q) ? h("span", { class: "badge" }, say("q.expects")) : null,
          d.text ? h("div", { class: "clamp", dir: "auto" }, clip(visible(d.text[q]), 200)) : null,
          reason ? h("div", { class: "narrow soft" }, reason) : null),
        h("td", { class: "extra left" }, clip(visible(d.cats[q].map((c) => d.categories[c]).join(", ")), 120)),
        h("td", { class: "extra left" }, clip(visible(d.langs[d.lang[q]]), 20)),
        h("td", { class: "number" }, this.written(this.value(q, this.first)), mark(this.first)),
        h("td", { class: "number" }, this.written(this.value(q, this.second)), mark(this.second)),
        h("td", { class: "number " + (delta > 0 ? "up" : delta < 0 ? "down" : "") }, this.written(delta, true)),
        h("td", { class: "extra left" }, reason));
    }
    toggle(q) {
      if (this.open.has(q)) this.open.delete(q); else this.open.add(q);
      this.show();
      $(`[data-question="${q}"]`, this.table)?.focus();
    }
    look(q) {
      this.reset();
      this.measure = 0;
      this.first = this.d.systems.indexOf(this.d.first);
      this.second = this.d.systems.indexOf(this.d.second);
      this.open.add(q);
      this.page = Math.floor(this.rows().indexOf(q) / PAGE);
      this.build();
      const button = $(`[data-question="${q}"]`, this.table);
      button.scrollIntoView({ block: "start" });
      button.focus();
    }

    text(content) {
      const shown = visible(content);
      return h("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": say("q.whole") }, shown);
    }
    snippet(memory) {
      const shown = visible(this.d.mt[memory]);
      if (shown.length <= 240) return h("div", { class: "snippet", dir: "auto" }, shown);
      return h("div", { class: "snippet", dir: "auto" }, clip(shown, 240),
        h("details", {}, h("summary", {}, say("q.whole")), this.text(this.d.mt[memory])));
    }
    detail(q) {
      const d = this.d;
      const judged = new Map();
      for (let i = this.labelStart[q]; i < this.labelStart[q + 1]; i++) judged.set(d.lm[i], d.lg[i]);
      const systems = this.first === this.second ? [this.first] : [this.first, this.second];
      const parts = [
        d.text ? this.text(d.text[q]) : null,
        h("p", { class: "note" }, [d.corpora.length > 1 ? visible(d.corpora[d.corpus[q]]) : "", d.split[q],
          visible(d.langs[d.lang[q]]), visible(d.cats[q].map((c) => d.categories[c]).join(", "))].filter(Boolean).join(" · ")),
        this.trace(q, systems),
        h("div", { class: "two" }, ...systems.map((system) => this.returned(q, system, judged))),
      ];
      return h("tr", { class: "detail" }, h("td", { colspan: phone.matches ? "4" : "7" }, ...parts.filter(Boolean)));
    }
    returned(q, system, judged) {
      const d = this.d, { memories, more } = this.list(q, system);
      const items = memories.map((memory, i) => {
        const grade = judged.get(memory);
        const kind = grade === undefined ? "" : grade < 0 ? "forbidden" : grade > 0 ? "relevant" : "irrelevant";
        const badge = kind && h("span", { class: "badge " + kind }, kind === "relevant" ? say("q.grade", { grade }) : say("q." + kind));
        return h("li", { class: kind || null }, h("span", { class: "rank" }, String(i + 1)),
          h("span", { class: "memory" }, clip(visible(d.m[memory]), 80), " ", badge), d.mt ? this.snippet(memory) : null);
      });
      return h("div", {}, h("h4", {}, visible(d.systems[system])),
        this.failed[system].has(q) ? h("p", { class: "down" }, say("q.failed")) : null,
        items.length ? h("ol", { class: "list" }, ...items) : h("p", { class: "soft" }, say("q.empty")),
        more ? h("p", { class: "note" }, say("q.more", { n: more })) : null);
    }
    trace(q, systems) {
      const d = this.d, labels = [];
      let at = this.traceStart[q];
      for (let i = this.labelStart[q]; i < this.labelStart[q + 1]; i++) if (d.lg[i] > 0) labels.push([i, at++]);
      if (!labels.length) return h("p", { class: "note" }, say("q.nolabel"));
      const rows = [];
      for (const [i, place] of labels) {
        for (const system of systems) {
          const stages = d.stages[system].map(([name, column]) => [name, d.tc[column][place]]).filter((one) => one[1] > 0);
          const code = d.lost[system] < 0 ? -1 : d.tc[d.lost[system]][place];
          const name = code < 0 ? "" : d.outcomes[code];
          rows.push(h("tr", {},
            h("th", { scope: "row" }, h("span", { class: "memory" }, clip(visible(d.m[d.lm[i]]), 80)), " ", h("span", { class: "badge" }, say("q.grade", { grade: d.lg[i] }))),
            h("td", { class: "left" }, visible(d.systems[system])),
            h("td", { class: "left" }, name ? h("span", { class: "badge " + (name === "kept" ? "kept" : "lost") }, outcomeName(name)) : say("q.notrace")),
            h("td", { class: "left" }, stages.map(([stage, rank]) => `${visible(stage)} ${rank}`).join(" → ") || "–")));
        }
      }
      return h("div", {}, h("h4", {}, say("q.trace")),
        h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": say("q.trace") }, h("table", { class: "wrap trace" },
          h("thead", {}, h("tr", {}, ...["q.memory", "q.system", "q.became", "q.stages"].map((key) => h("th", { scope: "col", class: "left" }, say(key))))),
          h("tbody", {}, ...rows))));
    }
  }

  // Tables that sort by their columns
  function sortable(table) {
    const heads = $$("thead th", table);
    heads.forEach((head, column) => {
      const button = $("button", head);
      if (!button) return;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const one of heads) one.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = $("tbody", table), value = (row) => row.children[column].dataset.v;
        const rows = $$("tr", body).map((row, i) => [value(row), i, row]);
        rows.sort(([a, i], [b, j]) => (a === "" || b === "" ? (a === "") - (b === "") : (down ? -1 : 1) * (Number(a) - Number(b))) || i - j);
        body.append(...rows.map((one) => one[2]));
      });
    });
  }

  // Start
  const tables = new Map();
  const sections = $$("[data-section]");
  const current = () => sections.find((one) => !one.hidden);
  async function refresh() {
    const section = current();
    if (!section) return;
    const number = section.dataset.section, place = $("[data-questions]", section);
    if (place) {
      const data = await unpackJson("data-" + number);
      if (tables.has(number)) tables.get(number).build();
      else tables.set(number, new Questions(place, data, number));
    }
    await drawSection(section);
  }
  function choose(number) {
    for (const one of sections) one.hidden = one.dataset.section !== number;
    for (const one of $$("[data-run]")) one.setAttribute("aria-current", String(one.dataset.run === number));
    return refresh();
  }

  async function start() {
    if (typeof DecompressionStream === "undefined") { $("#old-browser").hidden = false; return; }
    words = await unpackJson("words");
    const given = store.get("lang");
    if (given === "en" || given === "zh") setLang(given);
    else if (navigator.language.startsWith("zh")) setLang("zh");
    const theme = store.get("theme");
    if (["auto", "light", "dark"].includes(theme)) setTheme(theme);
    for (const one of $$("table.sortable")) sortable(one);
    for (const one of $$("[data-set-lang]")) one.addEventListener("click", () => { setLang(one.dataset.setLang); refresh(); });
    $("[data-set-theme]").addEventListener("change", (event) => { setTheme(event.target.value); drawn(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn());
    for (const one of $$("[data-run]")) one.addEventListener("click", () => choose(one.dataset.run));
    for (const one of $$("[data-look]")) {
      one.addEventListener("click", () => tables.get(one.closest("[data-section]").dataset.section).look(Number(one.dataset.look)));
    }
    for (const one of $$("[data-waterfall]")) one.addEventListener("change", () => drawn());
    phone.addEventListener("change", () => { for (const one of tables.values()) one.show(); });
    for (const one of sections.slice(1)) one.hidden = true;
    await refresh();
    root.dataset.ready = "true";
    performance.mark("ready");
  }
  const drawn = () => drawSection(current());
  start();
})();
