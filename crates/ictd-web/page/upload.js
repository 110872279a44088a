// A file of the reader's own: dropped, chosen or pasted, and read in the page alone.

import { html } from "ictd/draw";

/** Bytes that the page takes; the command line takes more. */
const LARGEST = 64 * 2 ** 20;

/** What a name says of a file: parameters of a network, or a log. */
export const isCheckpoint = (name) => /\.(safetensors|json)$/i.test(name);

/** The place for files. `take(name, bytes)` gets what is in one, `example()` is called for an example, `fail(line)` for what cannot be read. */
export class Upload {
  constructor({ take, example, fail }) {
    Object.assign(this, { take, fail });
    const input = html("input", {
      type: "file",
      id: "file",
      class: "away",
      tabindex: -1,
      "aria-hidden": "true",
      onchange: () => this.read(input.files[0], input),
    });
    const choose = html("button", { type: "button", class: "main", onclick: () => input.click() }, "Choose a file");
    const paste = html(
      "button",
      { type: "button", id: "paste", "aria-expanded": "false", onclick: () => this.open(this.pasted.hidden) },
      "Paste text",
    );
    const try_ = html("button", { type: "button", id: "example", onclick: example }, "Try an example");
    this.handle = paste;
    this.area = html("textarea", {
      id: "pasted",
      rows: 6,
      spellcheck: "false",
      "aria-label": "A log as CSV, or parameters as JSON",
      placeholder: "episode,t,x1,x2,reward\n1,0,0.3,-0.2,1\n1,1,0.9,0.1,0\n…",
    });
    const use = html("button", { type: "button", id: "use-pasted", onclick: () => this.use() }, "Read it");
    this.pasted = html("div", { class: "pasted", hidden: true }, this.area, use);
    const words = html(
      "p",
      {},
      "Drop a log of transitions here, as CSV, or a checkpoint of “ictd pretrain”. It is read in this page and goes nowhere.",
    );
    this.root = html(
      "section",
      { class: "card drop", id: "drop" },
      words,
      html("div", { class: "buttons" }, choose, paste, try_),
      input,
      this.pasted,
    );
    this.listen();
  }

  open(open) {
    this.pasted.hidden = !open;
    this.handle.setAttribute("aria-expanded", open);
    if (open) this.area.focus();
  }

  use() {
    const text = this.area.value;
    if (text.trim() === "") return this.fail("There is nothing to read: paste a table with a line of column names first.");
    return this.take(text.trimStart().startsWith("{") ? "pasted.json" : "pasted.csv", new TextEncoder().encode(text));
  }

  async read(file, input = null) {
    if (!file) return;
    try {
      if (file.size > LARGEST)
        throw new Error(
          `${file.name} has ${Math.round(file.size / 2 ** 20)} MB; the page takes ${LARGEST / 2 ** 20}, the command line more: ictd evaluate ${file.name}`,
        );
      this.take(file.name, new Uint8Array(await file.arrayBuffer()));
    } catch (error) {
      this.fail(error.message);
    }
    // The same file may be chosen again after it was changed.
    if (input) input.value = "";
  }

  /** All of the page takes what is dropped while the scene is shown, so that a near miss does not leave the page. */
  listen() {
    const here = () => this.root.isConnected;
    addEventListener("dragover", (event) => {
      if (!here()) return;
      event.preventDefault();
      this.root.classList.add("over");
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) this.root.classList.remove("over");
    });
    addEventListener("drop", (event) => {
      if (!here()) return;
      event.preventDefault();
      this.root.classList.remove("over");
      const text = event.dataTransfer.getData("text/plain");
      if (event.dataTransfer.files.length > 0) this.read(event.dataTransfer.files[0]);
      else if (text) {
        this.area.value = text;
        this.open(true);
        this.use();
      }
    });
  }
}
