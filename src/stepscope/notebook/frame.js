// A frame with the page's own timeline, and the way of its questions to the kernel and back.
//
// What the frame shows first is part of the widget's state, so a saved notebook shows it without a kernel.

const DEADLINE_MS = 30_000;

function channel(model) {
  const asked = new Map();
  let last = 0;
  const take = (message, [body]) => {
    asked.get(message.id)?.({ status: message.status, body });
    asked.delete(message.id);
  };
  model.on("msg:custom", take);
  const ask = (url) =>
    new Promise((resolve, reject) => {
      last += 1;
      asked.set(last, resolve);
      setTimeout(reject, DEADLINE_MS, new Error("the notebook's kernel does not answer"));
      model.send({ id: last, url });
    });
  return { ask, close: () => model.off("msg:custom", take) };
}

// A notebook is dark where its text is light; each has its own name for its themes.
function themeOf(el) {
  const [red, green, blue] = getComputedStyle(el).color.match(/[\d.]+/g).map(Number);
  return red + green + blue > 3 * 128 ? "dark" : "light";
}

function render({ model, el }) {
  const { ask, close } = channel(model);
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.style.cssText = "width: 100%; height: 38em; border: 0; border-radius: 8px; color-scheme: normal";
  const watch = new MutationObserver(() => frame.notebook.put(themeOf(el)));
  const followTheme = (put) => {
    frame.notebook.put = put;
    put(themeOf(el));
    watch.observe(document.body, { attributes: true });
  };
  frame.notebook = { rules: model.get("rules"), params: model.get("params"), kept: model.get("kept"), ask, followTheme };
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    watch.disconnect();
    close();
  };
}

export default { render };
