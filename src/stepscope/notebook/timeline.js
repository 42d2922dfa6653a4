// The timeline of a trace in a notebook: drawn on a canvas, zoomed by the wheel, dragged, read by pointing.
//
// The first window is part of the widget's state, so a saved notebook shows it without a kernel.  With one, each window
// that is zoomed to is asked for at the level of detail of its pixels.

const ROW = 16, GAP = 5, GUTTER = 150, RULER = 30;
function timeText(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(3)} s`;
  return ms >= 1 ? `${ms.toFixed(3)} ms` : `${(1000 * ms).toFixed(2)} µs`;
}

// Round numbers between two others, at most about `most`.
function ticksBetween(low, high, most) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) ticks.push(at * step);
  return ticks;
}

function build(el) {
  const root = document.createElement("div");
  root.className = "stepscope-timeline";
  root.innerHTML = `<div class="bar" role="toolbar" aria-label="Timeline">
    <button data-do="in" title="Zoom in (w)">+</button><button data-do="out" title="Zoom out (s)">&minus;</button>
    <button data-do="left" title="Earlier (a)">&larr;</button><button data-do="right" title="Later (d)">&rarr;</button>
    <button data-do="previous">Previous step</button><button data-do="next">Next step</button>
    <button data-do="all">Whole trace</button><span class="where"></span></div>
    <div class="plot"><canvas tabindex="0" role="img"></canvas></div>
    <div class="details" aria-live="polite">Point at an event; the wheel zooms, dragging moves.</div>`;
  el.appendChild(root);
  return {
    root,
    canvas: root.querySelector("canvas"),
    plot: root.querySelector(".plot"),
    where: root.querySelector(".where"),
    details: root.querySelector(".details"),
  };
}

class Timeline {
  constructor(model, parts) {
    this.model = model;
    this.parts = parts;
    this.trace = model.get("trace");
    this.slices = model.get("slices");
    [this.start, this.end] = model.get("window");
    this.asked = 0;
    this.tops = [];
    let y = RULER;
    for (const track of this.trace.tracks) {
      for (let row = 0; row < track.rows; row++) this.tops.push(y + row * ROW);
      y += track.rows * ROW + GAP;
    }
    this.height = y + 4;
  }

  // -- time and pixels

  get width() {
    return this.parts.canvas.clientWidth - GUTTER;
  }

  xOf(ms) {
    return GUTTER + ((ms - this.start) / (this.end - this.start)) * this.width;
  }

  timeAt(x) {
    return this.start + ((x - GUTTER) / this.width) * (this.end - this.start);
  }

  show(start, end) {
    const { start_ms: first, end_ms: last } = this.trace;
    const length = Math.min(Math.max(end - start, 1e-6), last - first);
    this.start = Math.min(Math.max(start, first), last - length);
    this.end = this.start + length;
    this.model.set("window", [this.start, this.end]);
    this.model.save_changes();
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), 60);
  }

  ask() {
    this.asked += 1;
    const width = Math.round(this.width);
    this.model.send({ kind: "window", id: this.asked, start_ms: this.start, end_ms: this.end, width });
  }

  take(message) {
    if (message.kind !== "window" || message.id !== this.asked) return;
    this.slices = message.slices;
    this.draw();
  }

  zoom(factor, at) {
    const middle = at ?? (this.start + this.end) / 2;
    this.show(middle - (middle - this.start) * factor, middle + (this.end - middle) * factor);
  }

  move(share) {
    const by = share * (this.end - this.start);
    this.show(this.start + by, this.end + by);
  }

  step(direction) {
    const { start_ms: starts, end_ms: ends } = this.trace.steps;
    if (!starts.length) return;
    const now = (this.start + this.end) / 2;
    let at = starts.findIndex((start, row) => now >= start && now < ends[row]);
    if (at < 0) at = starts.findIndex((start) => start > now) - (direction > 0 ? 1 : 0);
    at = Math.min(Math.max(at + direction, 0), starts.length - 1);
    const margin = 0.03 * (ends[at] - starts[at]);
    this.show(starts[at] - margin, ends[at] + margin);
  }

  do(what) {
    const actions = {
      in: () => this.zoom(0.6),
      out: () => this.zoom(1 / 0.6),
      left: () => this.move(-0.3),
      right: () => this.move(0.3),
      previous: () => this.step(-1),
      next: () => this.step(1),
      all: () => this.show(this.trace.start_ms, this.trace.end_ms),
    };
    actions[what]?.();
  }

  // -- drawing

  draw() {
    const canvas = this.parts.canvas, ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${this.height}px`;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = this.height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    this.ink = getComputedStyle(canvas).color;
    this.drawFrame(pen);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, RULER, this.width, this.height);
    pen.clip();
    for (let at = 0; at < this.slices.lane.length; at++) this.drawSlice(pen, at);
    pen.restore();
    this.drawSteps(pen);
    const shown = `${this.start.toFixed(3)} to ${this.end.toFixed(3)} ms (${timeText(this.end - this.start)})`;
    this.parts.where.textContent = `${this.trace.host}: ${shown}`;
    canvas.setAttribute("aria-label", `Timeline of ${this.parts.where.textContent}`);
  }

  drawFrame(pen) {
    pen.clearRect(0, 0, this.parts.canvas.clientWidth, this.height);
    pen.fillStyle = this.ink;
    pen.strokeStyle = this.ink;
    for (const tick of ticksBetween(this.start, this.end, 7)) {
      pen.globalAlpha = 0.15;
      pen.fillRect(this.xOf(tick), RULER - 6, 1, this.height);
      pen.globalAlpha = 0.7;
      pen.textAlign = "center";
      pen.fillText(`${+tick.toPrecision(10)} ms`, this.xOf(tick), 11);
    }
    let row = 0;
    for (const track of this.trace.tracks) {
      pen.globalAlpha = 1;
      pen.textAlign = "right";
      pen.fillText(this.fit(pen, track.name, GUTTER - 14), GUTTER - 8, this.tops[row] + ROW - 5);
      pen.globalAlpha = 0.15;
      pen.fillRect(0, this.tops[row] - GAP / 2 - 1, this.parts.canvas.clientWidth, 1);
      row += track.rows;
    }
    pen.globalAlpha = 1;
  }

  drawSlice(pen, at) {
    const { start, end, lane, count, name, names, colours } = this.slices;
    const left = Math.max(this.xOf(start[at]), GUTTER - 1);
    const right = Math.min(this.xOf(end[at]), GUTTER + this.width + 1);
    if (right < GUTTER || left > GUTTER + this.width) return;
    const width = Math.max(right - left, 0.8), text = names[name[at]];
    pen.fillStyle = colours[name[at]];
    pen.fillRect(left, this.tops[lane[at]], width > 3 ? width - 0.5 : width, ROW - 1);
    if (count[at] > 1 || width < 24) return;
    pen.fillStyle = "#fff";
    pen.textAlign = "left";
    pen.fillText(this.fit(pen, text, width - 8), left + 4, this.tops[lane[at]] + ROW - 5);
  }

  drawSteps(pen) {
    const { number, start_ms: starts } = this.trace.steps;
    let free = 0;
    pen.fillStyle = this.ink;
    pen.textAlign = "left";
    for (let at = 0; at < starts.length; at++) {
      const x = this.xOf(starts[at]);
      if (x < GUTTER || x > GUTTER + this.width) continue;
      pen.globalAlpha = 0.6;
      pen.fillRect(x, 15, 1, this.height);
      pen.globalAlpha = 1;
      if (x >= free) {
        pen.fillText(`step ${number[at]}`, x + 3, 25);
        free = x + 60;
      }
    }
  }

  fit(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    const letters = Math.floor(room / 6.2) - 1;
    return letters > 2 ? `${text.slice(0, letters)}…` : "";
  }

  // -- pointing

  sliceAt(x, y) {
    const lane = this.tops.findIndex((top) => y >= top && y < top + ROW), time = this.timeAt(x);
    const slack = (1.5 / this.width) * (this.end - this.start);
    let best = -1;
    for (let at = 0; at < this.slices.lane.length; at++) {
      if (this.slices.lane[at] !== lane) continue;
      if (time < this.slices.start[at] - slack || time > this.slices.end[at] + slack) continue;
      if (best < 0 || this.slices.start[at] > this.slices.start[best]) best = at;
    }
    return x < GUTTER ? -1 : best;
  }

  describe(at) {
    if (at < 0) return;
    const { start, busy, count, name, names } = this.slices;
    const more = count[at] > 1 ? ` and ${(count[at] - 1).toLocaleString()} more events` : "";
    const when = `${timeText(busy[at])}, from ${start[at].toFixed(6)} ms`;
    this.parts.details.textContent = `${names[name[at]]}${more}: ${when}`;
  }
}

function listen(timeline, parts) {
  const canvas = parts.canvas;
  let held = null;
  parts.root.querySelector(".bar").addEventListener("click", (event) => timeline.do(event.target.dataset.do));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey) timeline.move(event.deltaY / 800);
    else timeline.zoom(Math.exp(event.deltaY / 400), timeline.timeAt(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.offsetX, start: timeline.start, end: timeline.end };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return timeline.describe(timeline.sliceAt(event.offsetX, event.offsetY));
    const by = ((held.x - event.offsetX) / timeline.width) * (held.end - held.start);
    if (Math.abs(held.x - event.offsetX) > 2) timeline.show(held.start + by, held.end + by);
  });
  const keys = { w: "in", s: "out", a: "left", d: "right", ArrowLeft: "left", ArrowRight: "right" };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    timeline.do(keys[event.key]);
  });
}

function render({ model, el }) {
  const parts = build(el), timeline = new Timeline(model, parts);
  listen(timeline, parts);
  const take = (message) => timeline.take(message);
  model.on("msg:custom", take);
  const sizes = new ResizeObserver(() => timeline.draw());
  sizes.observe(parts.plot);
  timeline.draw();
  return () => {
    model.off("msg:custom", take);
    sizes.disconnect();
  };
}

export default { render };
