/* What must happen at once happens here: who is in which group, and what the drawing looks like. Numbers come from
   the server. Names are drawn on a canvas or set as text, never as markup. */
(function () {
  "use strict";
  const same = (p, q) => p.length === q.length && p.every((node) => q.includes(node));
  const skip = () => window.dash_clientside.no_update;
  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toPrecision(3);

  /* What fired: several at once when the browser is busy. */
  function trigger() {
    const fired = (window.dash_clientside.callback_context.triggered || []).map((one) => one.prop_id);
    return (...names) => fired.some((id) => names.some((name) => id.startsWith(name)));
  }

  /* The element that Cytoscape draws in. Its private mark is read because there is no public way to an instance that
     dash-cytoscape made: `window.cy`, its aid for debugging, is the one of two drawings that was made last. */
  function stage(within) {
    return within ? [within, ...within.querySelectorAll("*")].find((element) => element._cyreg) : null;
  }

  function library() {
    const found = stage(document.getElementById("graph"));
    return found ? found._cyreg.cy : null;
  }

  /* What dash-cytoscape has no properties for: a click adds to the selection instead of starting a new one, and a
     drawing fills its place when that changes its size. */
  const settled = new WeakSet();
  function settle() {
    for (const name of ["graph", "second"]) {
      const found = stage(document.getElementById(name));
      if (!found || settled.has(found._cyreg.cy)) continue;
      const { cy } = found._cyreg;
      settled.add(cy);
      cy.selectionType("additive");
      point(name === "graph" ? "first" : "second", cy);
      new ResizeObserver(() => cy.resize().fit(undefined, 24)).observe(found);
    }
  }

  /* What the pointer is over: told by the library itself, whose properties in Dash do not say that it left. What an
     edge contributes is asked of the server when it is pointed at. */
  function point(figure, cy) {
    const tell = (data) => window.dash_clientside.set_props("pointed", { data });
    cy.on("mouseover", "node, edge[name]", (event) => {
      const { key, name, score, edge } = event.target.data();
      tell({ figure, key, name, score, edge });
      if (edge) window.dash_clientside.set_props("edge", { data: { key, edge } });
    });
    cy.on("mouseout", "node, edge[name]", () => tell(null));
    cy.container().addEventListener("mouseleave", () => tell(null)); /* the library does not see a quick way out */
  }

  /* What clicks put into groups: nodes, by their numbers, or edges, by their ends. */
  let kind = "node";
  const item = (data) => (kind === "edge" ? data.edge : data.node);
  const choosable = () => library().elements(kind === "edge" ? "edge[edge]" : "node");

  function selected() {
    return library() ? choosable().filter(":selected").map((one) => one.data()) : null;
  }

  /* One node or edge goes into a group or out of it; it is never in both groups. */
  function toggled(groups, active, one) {
    const inside = groups[active].includes(one);
    groups[active] = inside ? groups[active].filter((n) => n !== one) : [...groups[active], one];
    groups[1 - active] = groups[1 - active].filter((n) => n !== one);
    return groups;
  }

  function groups(...given) {
    const [clear, drawing, of, a, b, into] = given.slice(6);
    const [tap, tapSecond, boxed] = of === "edge" ? given.slice(3, 6) : given.slice(0, 3);
    const told = of === "edge" ? "Edge" : "Node";
    kind = of;
    const before = [a || [], b || []];
    const active = into === "b" ? 1 : 0;
    const fired = trigger();
    const tapped = fired(`graph.tap${told}`) ? tap : fired(`second.tap${told}`) ? tapSecond : null;
    let after = before.map((group) => [...group]);
    if (fired("of.") && library()) library().elements().unselect();
    if (fired("clear", "drawing", "of.")) {
      after = [[], []];
    } else if (fired("graph.") && drawing) {
      /* What is selected now, not what was told: of several quick clicks only the last may be told, and late. */
      const chosen = selected() || (boxed || []);
      const other = new Set(fired(`graph.selected${told}`) ? [] : after[1 - active]);
      if (tapped) other.delete(item(tapped));
      after[active] = chosen.filter((d) => d.key === drawing.key && !other.has(item(d))).map(item);
      after[1 - active] = after[1 - active].filter((n) => !after[active].includes(n));
    } else if (tapped && drawing && tapped.key === drawing.key) {
      after = toggled(after, active, item(tapped));
    } else if (fired("group-a")) {
      after[1] = after[1].filter((n) => !after[0].includes(n));
    } else if (fired("group-b")) {
      after[0] = after[0].filter((n) => !after[1].includes(n));
    }
    return after.map((group, i) => (same(group, before[i]) ? skip() : group));
  }

  /* What the lists offer, and what nodes and edges are called. */
  function lists(drawing, of) {
    if (!drawing) return [skip(), skip(), skip(), skip()];
    const kinds = ["node", "edge"].map((value) => ({ label: drawing.words[value], value }));
    const offered = of === "edge"
      ? drawing.edges.filter((edge) => edge.able).map((edge) => ({ label: edge.name, value: named(edge) }))
      : drawing.nodes.map((node) => ({ label: node.name, value: node.node }));
    const hint = `Click ${drawing.words[of]}, or draw around them, to ask what they contribute.`;
    return [kinds, offered, offered, hint];
  }

  const named = (edge) => `${edge.u}-${edge.v}`;

  function edges(drawing, owner, mark, active, of) {
    const found = [];
    for (const edge of drawing.edges) {
      const ends = { source: `${drawing.key}-${edge.u}`, target: `${drawing.key}-${edge.v}` };
      const inside = owner && owner[edge.u] >= 0 && owner[edge.u] === owner[edge.v];
      const order = inside ? 1 : edge.order;
      const id = `${ends.source}-${edge.v}`;
      const marked = mark(named(edge));
      const classes = `order${order}` + (edge.arc ? " arc" : "") + (edge.far ? " far" : "") + (inside ? " inside" : "") +
        marked + (edge.able ? "" : " off");
      const data = { id, ...ends, arc: -2 * edge.arc, key: drawing.key };
      if (edge.able) Object.assign(data, { edge: named(edge), name: edge.name });
      const chosen = active !== null && marked === [" in-a", " in-b"][active];
      found.push({ data, classes, selectable: of === "edge", selected: chosen });
      /* A white line upon a wide one makes two, a dark one upon that makes three. */
      if (order > 1) found.push({ data: { id: `${id}-gap`, ...ends }, classes: `gap${order} off` });
      if (order > 2) found.push({ data: { id: `${id}-core`, ...ends }, classes: "core off" });
    }
    return found;
  }

  /* The elements of a drawing under a layer of colours; groups are marked, and those of the active one selected. */
  function elements(drawing, layer, a, b, active, numbers, of) {
    const shown = drawing.numbered ? numbers || [] : [];
    const written = (node) => node.label + (shown.includes("charges") ? node.charge || "" : "") +
      (shown.includes("numbers") ? ` ${node.node}` : "");
    const marks = [new Set(a || []), new Set(b || [])];
    const marking = (one) => (marks[0].has(one) ? " in-a" : marks[1].has(one) ? " in-b" : "");
    const owner = layer.groups ? {} : null;
    const nodes = drawing.nodes.map((node, i) => {
      const mark = marking(node.node);
      const alone = layer.groups && layer.groups[i] < 0;
      if (owner) owner[node.node] = layer.groups[i];
      return {
        data: {
          id: `${drawing.key}-${node.node}`, key: drawing.key, node: node.node, label: written(node), name: node.name,
          width: node.width, height: node.height, colour: layer.colours[i], ink: layer.inks[i],
          score: alone ? null : layer.scores[i],
          front: Math.round(8 * Math.abs(layer.scores[i]) / (layer.most || 1)), /* strong nodes lie upon weak ones */
        },
        position: { x: node.x, y: node.y },
        classes: node.classes.join(" ") + mark + (alone ? " alone" : ""),
        selected: active === null ? false : marks[active].has(node.node),
      };
    });
    return [...nodes, ...edges(drawing, owner, marking, active, of)];
  }

  function chosenLayer(drawing, view, target, growth, level, first) {
    const fits = (found) => found && found.key === drawing.key && found.target === target;
    if (view === "growth" && fits(growth)) {
      const at = Math.min(Math.max(Number(level) || 0, 0), growth.levels.length - 1);
      return { ...growth.levels[at], most: growth.most, caption: `what each group contributes to ${growth.name}` };
    }
    if (view === "compare" && first && first.key === drawing.key) return first;
    return { ...drawing.layers[target], caption: drawing.captions[target] };
  }

  let legends = [];
  function draw(drawing, view, target, growth, level, first, a, b, into, numbers, of) {
    if (!drawing || target === null || !drawing.layers[target]) return [skip(), skip(), skip(), skip()];
    settle();
    const layer = chosenLayer(drawing, view, target, growth, level, first);
    const shown = elements(drawing, layer, a, b, into === "b" ? 1 : 0, numbers, of);
    const legend = [signed(-layer.most), signed(layer.most), layer.caption];
    /* Most clicks leave the legend as it is, and whatever is set anew costs a round through the whole page. */
    const told = legend.map((text, i) => (text === legends[i] ? skip() : text));
    legends = legend;
    return [shown, ...told];
  }

  /* What belongs to another class, but to the same graph, stays, dimmed by the page, until the answer is there. */
  function drawSecond(drawing, view, target, second, a, b, numbers, of) {
    if (view !== "compare") return [skip(), skip(), skip(), skip()];
    const fits = drawing && second && second.key === drawing.key;
    if (!fits) return [[], "", "", ""];
    const shown = elements(drawing, second, a, b, null, numbers, of);
    return [shown, signed(-second.most), signed(second.most), second.caption];
  }

  /* A drawing that is much wider than high, as a short sentence, needs less room. */
  function flat(drawing) {
    const [wide, high] = ["x", "y"].map((side) => {
      const places = drawing.nodes.map((node) => node[side]);
      return Math.max(...places) - Math.min(...places);
    });
    return high < 0.35 * wide;
  }

  function views(view, drawing) {
    const shape = drawing && flat(drawing) ? "flat" : "";
    const switched = drawing && drawing.numbered ? "switch" : "switch none";
    return ["growth", "compare"].map((name) => name !== view).concat(`stage ${view} ${shape}`, switched);
  }

  /* What the pointer is over, with its number: below the drawing that it is over. */
  function hover(over, answer, target) {
    if (!over) return ["", ""];
    const answered = answer && answer.key === over.key && answer.edge === over.edge;
    const score = over.edge ? (answered ? answer.scores[target] : undefined) : over.score;
    const known = score !== null && score !== undefined;
    const said = over.name + (known ? `: ${signed(score)}` : over.edge ? ": …" : "");
    return ["first", "second"].map((figure) => (figure === over.figure ? said : ""));
  }

  /* What dragging does: Cytoscape moves the picture and draws boxes, the lasso is drawn here. */
  let drags = "lasso";
  function dragging(drag) {
    drags = drag;
    return [drag === "move", drag === "box"];
  }

  /* Steps of the play button: on to the next level, and an end at the last one. */
  function play(clicks, ticks, growth, view, level, stopped) {
    const last = growth ? growth.levels.length - 1 : 0;
    const at = Number(level) || 0;
    const fired = trigger();
    if (view !== "growth" || !growth) return [true, skip(), "Play"];
    if (fired("growth.data")) return [true, 0, "Play"];
    if (fired("play.")) {
      return stopped ? [false, at >= last ? 0 : skip(), "Pause"] : [true, skip(), "Play"];
    }
    if (stopped) return [skip(), skip(), skip()];
    return at + 1 >= last ? [true, last, "Play"] : [skip(), at + 1, skip()];
  }

  /* A file that is too large is not even sent. */
  function upload(contents, name, most) {
    if (!contents) return [skip(), skip(), skip()];
    const mb = (contents.length * 0.75) / 1e6;
    if (mb > most / 1e6) {
      return [skip(), `${name} has ${mb.toFixed(1)} MB; this page takes up to ${most / 1e6} MB.`, null];
    }
    return [{ contents, at: Date.now() }, "", null];
  }

  /* The drawing library remembers where it stands on the page until something scrolls. Text above it may have grown
     since, and clicks would miss their nodes: so it is told, before it receives the pointer event itself. */
  for (const kind of ["pointerover", "pointerdown"]) {
    const tell = (event) => {
      const found = stage(event.target instanceof Element ? event.target.closest(".canvas") : null);
      if (found) found.dispatchEvent(new Event("scroll"));
    };
    document.addEventListener(kind, tell, true);
  }

  /* A row of the list of scores lights its node, in both drawings; a second click puts the light out. */
  document.addEventListener("click", (event) => {
    const row = event.target instanceof Element ? event.target.closest("#scores button[data-node]") : null;
    if (!row) return;
    const on = row.getAttribute("aria-pressed") !== "true";
    for (const other of document.querySelectorAll("#scores button[data-node]")) {
      other.setAttribute("aria-pressed", String(on && other === row));
    }
    for (const name of ["graph", "second"]) {
      const found = stage(document.getElementById(name));
      if (!found) continue;
      const { cy } = found._cyreg;
      cy.nodes().removeClass("lit");
      if (on && name === "graph") found.scrollIntoView({ block: "nearest" }); /* on a phone it is above the list */
      if (on) cy.nodes().filter((node) => String(node.data("node")) === row.dataset.node).addClass("lit");
    }
  });

  /* The lasso: a line around nodes, drawn by mouse, pen or finger, and closed by letting go. */
  let lasso = null;

  /* Whether a point is inside of a closed line: a ray from it crosses the line an odd number of times. */
  function encloses(line, x, y) {
    let found = false;
    line.forEach(([x1, y1], i) => {
      const [x2, y2] = line[(i + 1) % line.length];
      if (y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) found = !found;
    });
    return found;
  }

  function endLasso() {
    if (lasso) lasso.overlay.remove();
    lasso = null;
  }

  function startLasso(event) {
    const second = lasso !== null;
    endLasso();
    const inside = event.target instanceof Element && event.target.closest("#graph");
    if (drags !== "lasso" || !inside || !library() || event.button > 0 || second) return; /* two fingers zoom */
    const overlay = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    overlay.setAttribute("class", "lasso");
    const shape = overlay.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "polygon"));
    lasso = { pointer: event.pointerId, line: [[event.clientX, event.clientY]], overlay, shape };
    document.body.append(overlay);
  }

  function drawLasso(event) {
    if (!lasso || event.pointerId !== lasso.pointer) return;
    lasso.line.push([event.clientX, event.clientY]);
    lasso.shape.setAttribute("points", lasso.line.join(" "));
  }

  function closeLasso(event) {
    if (!lasso || event.pointerId !== lasso.pointer) return;
    const { line } = lasso;
    endLasso();
    const drawn = line.some(([x, y]) => Math.hypot(x - line[0][0], y - line[0][1]) > 8); /* else it is a click */
    if (!drawn) return;
    const box = stage(document.getElementById("graph")).getBoundingClientRect();
    const around = (node) => encloses(line, box.left + node.renderedPosition("x"), box.top + node.renderedPosition("y"));
    const within = (one) => (one.isNode() ? around(one) : around(one.source()) && around(one.target()));
    const all = choosable();
    const wanted = all.filter((one) => one.selected() || within(one));
    /* Once Cytoscape is done: a line that begins and ends on one node is a click to it. */
    setTimeout(() => {
      all.difference(wanted).unselect();
      wanted.select();
    });
  }

  document.addEventListener("pointerdown", startLasso, true);
  document.addEventListener("pointermove", drawLasso, true);
  document.addEventListener("pointerup", closeLasso, true);
  document.addEventListener("pointercancel", endLasso, true);

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explorer: { groups, lists, draw, drawSecond, views, hover, dragging, play, upload },
  });
})();
