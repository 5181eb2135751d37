// Draws what the page holds: unpacks the drawing library and the content, then shows one view, or one group, at a time.

class Drawing {
  constructor(content) {
    this.content = content;
    this.number = 0;
    this.chosen = null;
    this.div = find("picture");
  }

  // The layout that fits the width of the page: sentences have one with shorter lines.
  get way() {
    return this.content.layouts.length > 1 && this.div.clientWidth < 560 ? 1 : 0;
  }

  show() {
    const view = this.chosen === null ? this.content.views[this.number] : this.ofGroup(this.chosen);
    const layout = this.content.layouts[this.way];
    const image = view.images && view.images[this.way];
    const traces = image ? [] : [...this.bands(view, layout), this.lines(layout)];
    traces.push(this.edgeTexts(view, layout), this.nodes(view, layout, Boolean(image)));
    Plotly.react(this.div, traces, this.frame(layout, image), this.config());
    find("caption").textContent = view.title;
    find("unit").textContent = view.unit;
    find("account").textContent = view.account ? `${view.account[0].toUpperCase()}${view.account.slice(1)}.` : "";
    find("most").textContent = `${view.signed ? "+" : ""}${view.most.toPrecision(3)}`;
    find("least").textContent = view.signed ? `−${view.most.toPrecision(3)}` : "0";
    const { scale } = this.content;
    const colours = view.signed ? scale : scale.slice(scale.length >> 1);
    document.querySelector("#legend i").style.background = `linear-gradient(90deg, ${colours.join(", ")})`;
  }

  // A group of the table, on the picture of single nodes: its nodes keep their colours, all others step back.
  ofGroup(number) {
    const { title, nodes } = this.content.listed[number];
    return { ...this.content.views[0], title, inside: new Set(nodes) };
  }

  path(layout, edges) {
    const x = [], y = [];
    for (const [u, v] of edges) {
      x.push(layout.x[u], layout.x[v], null);
      y.push(layout.y[u], layout.y[v], null);
    }
    return { x, y, type: "scatter", mode: "lines", hoverinfo: "skip" };
  }

  lines(layout) {
    const width = this.content.edges.length > 300 ? 0.6 : 1.2;
    return { ...this.path(layout, this.content.edges), line: { color: "#8c8c8c", width } };
  }

  bands(view, layout) {
    const byColour = new Map();
    this.content.edges.forEach(([u, v], number) => {
      const group = view.group[u];
      const together = !view.shades && group >= 0 && group === view.group[v];
      const colour = view.shades ? view.shades[number] : together ? view.groups[group].colour : null;
      if (colour) byColour.set(colour, [...(byColour.get(colour) || []), [u, v]]);
    });
    const width = this.content.edges.length > 300 ? 3 : 8;
    return [...byColour].map(([color, edges]) => ({ ...this.path(layout, edges), line: { color, width } }));
  }

  // Lines have no hover of their own between their ends, so what is said of an edge hangs on its middle.
  edgeTexts(view, layout) {
    const said = (view.said || []).map((text, number) => [text, number]).filter(([text]) => text !== null);
    const ends = said.map(([, number]) => this.content.edges[number]);
    return {
      type: "scatter", mode: "markers", hoverinfo: "text", marker: { size: 12, opacity: 0 },
      x: ends.map(([u, v]) => (layout.x[u] + layout.x[v]) / 2),
      y: ends.map(([u, v]) => (layout.y[u] + layout.y[v]) / 2),
      text: said.map(([text, number], at) => ends[at].map((end) => this.content.names[end]).join(" – ") + ": " + text),
    };
  }

  nodes(view, layout, hidden) {
    const { names, index, truth } = this.content;
    const true_ = new Set(truth), inside = view.inside;
    const count = names.length, size = Math.max(8, Math.min(28, 170 / Math.sqrt(count)));
    const labels = names.map((name) => name.replace(/^node /, ""));
    const labelled = !hidden && count <= 60, within = count <= 40 && labels.every((label) => label.length <= 4);
    const group = (n) => view.groups[view.group[n]];
    const colour = (n) => (group(n) ? group(n).colour : "#ffffff");
    const text = (n) => {
      if (view.group[n] < 0) return `${names[n]}: in no group yet, alone ${view.alone[n]}`;
      if (!view.alone) return `${names[n]}: ${group(n).text}`;
      return `${names[n]}<br>its group ${group(n).text}, ${group(n).more}<br>alone ${view.alone[n]}`;
    };
    const all = names.map((_, n) => n);
    return {
      type: "scatter", mode: labelled ? "markers+text" : "markers", hoverinfo: "text",
      x: layout.x, y: layout.y,
      hovertext: all.map(text),
      text: labelled ? labels : undefined,
      textposition: within ? "middle center" : "top center",
      textfont: { size: 10, color: all.map((n) => (within && group(n) && group(n).dark ? "#ffffff" : "#222222")) },
      marker: {
        size: all.map((n) => (hidden ? 24 : n === index ? size * 1.3 : size)),
        symbol: all.map((n) => (n === index && !hidden ? "diamond" : "circle")),
        color: all.map((n) => (hidden ? "rgba(0,0,0,0)" : colour(n))),
        opacity: all.map((n) => (inside && !inside.has(n) ? 0.2 : 1)),
        line: {
          color: all.map((n) => (true_.has(n) || (inside && inside.has(n)) ? "#222222" : hidden ? "rgba(0,0,0,0)" : "#8c8c8c")),
          width: all.map((n) => (true_.has(n) || (inside && inside.has(n)) ? 2.5 : 0.8)),
        },
      },
    };
  }

  frame(layout, image) {
    const [left, low, right, high] = layout.box;
    const air = image ? 0.02 : 0.07;
    const dx = Math.max(right - left, 1e-6) * air, dy = Math.max(high - low, 1e-6) * air;
    const axis = { visible: false, zeroline: false };
    const picture = {
      source: image, xref: "x", yref: "y", x: left, y: high, sizex: right - left, sizey: high - low,
      sizing: "stretch", layer: "below",
    };
    return {
      xaxis: { ...axis, range: [left - dx, right + dx] },
      yaxis: { ...axis, range: [low - dy, high + dy], scaleanchor: "x" },
      margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, dragmode: "pan", hovermode: "closest",
      paper_bgcolor: "#fff", plot_bgcolor: "#fff", images: image ? [picture] : [],
      uirevision: `layout ${this.way}`, hoverlabel: { align: "left", bgcolor: "#222222", font: { color: "#ffffff" } },
    };
  }

  config() {
    return {
      displaylogo: false, responsive: true, scrollZoom: true, showTips: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoom2d", "pan2d"],
      toImageButtonOptions: { format: "svg", filename: "xdegree" },
    };
  }

  // Words and molecules have a shape of their own; the drawing is as tall as that needs, within a screen.
  fit() {
    const layout = this.content.layouts[this.way];
    const [left, low, right, high] = layout.box;
    if (this.content.views[0].images[0]) {
      const tall = (this.div.clientWidth * (high - low)) / Math.max(right - left, 1e-6);
      this.div.style.height = `${Math.max(160, Math.min(tall * 1.05 + 10, window.innerHeight * 0.62))}px`;
    }
  }
}

function keys(content) {
  const said = [content.part, "Drag to move, scroll or pinch to zoom, double-click to see all."];
  if (content.index !== null && content.kind === "graph") said.push("◆ is the explained node.");
  if (content.truth.length) said.push("Dark rings are the ground truth.");
  return said.join(" ").trim();
}

function listen(drawing) {
  const slider = find("level"), buttons = [...document.querySelectorAll("button.group")];
  const choose = (group) => {
    drawing.chosen = group;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset.group) === group)));
    drawing.show();
  };
  const go = (number) => {
    slider.value = String(Math.max(0, Math.min(Number(slider.max), number)));
    drawing.number = Number(slider.value);
    choose(null);
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  find("back").addEventListener("click", () => go(Number(slider.value) - 1));
  find("on").addEventListener("click", () => go(Number(slider.value) + 1));
  for (const button of buttons) {
    const group = Number(button.dataset.group);
    button.addEventListener("click", () => {
      choose(drawing.chosen === group ? null : group);
      find("drawing").scrollIntoView({ block: "nearest" });
    });
  }
  // Paper is narrower than a screen: the drawing is made anew for it, and afterwards as it was.
  window.addEventListener("beforeprint", () => Plotly.relayout(drawing.div, { width: 640, height: 400 }));
  window.addEventListener("afterprint", () => Plotly.relayout(drawing.div, { width: null, height: null, autosize: true }));
  let before = drawing.way;
  window.addEventListener("resize", () => {
    drawing.fit();
    if (drawing.way !== before) drawing.show();
    before = drawing.way;
  });
}

async function start() {
  const [library, content] = await Promise.all([unpacked("library"), unpacked("content")]);
  const script = document.createElement("script");
  script.textContent = library;
  document.head.append(script);
  const drawing = new Drawing(JSON.parse(content));
  find("level").max = String(drawing.content.views.length - 1);
  find("keys").textContent = keys(drawing.content);
  drawing.fit();
  drawing.show();
  listen(drawing);
  document.body.dataset.ready = "yes";
}

start().catch((error) => {
  find("problem").hidden = false;
  find("problem").textContent = `The drawing needs a browser of 2023 or later (${error.message}); the tables do not.`;
});
