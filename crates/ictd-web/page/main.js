// The page: scenes, the frame around them, and what every scene shares.

import { ready } from "ictd/engine";
import { openDoor } from "ictd/door";
import { html } from "ictd/draw";
import { again, ask, say, tell } from "ictd/explain";
import { model, processOf } from "ictd/model";
import { field, restore, state, subscribe, undo, undoable, update, word } from "ictd/state";
import { dark, toggle } from "ictd/theme";
import { openTour } from "ictd/tour";
import { scene as layerScene } from "ictd/scene1";
import { scene as depthScene } from "ictd/scene2";
import { scene as trainScene } from "ictd/scene3";
import { scene as ownScene } from "ictd/scene4";

/**
 * The scenes in their order. A scene is `{key, name, title, mount(), draw(state, changed), leave()}`: `mount` is called once, when it is
 * first shown, and returns `{controls, picture}`, lists of elements; `draw` in every frame in which something changed.
 */
const scenes = [layerScene, depthScene, trainScene, ownScene];

const get = (id) => document.getElementById(id);
const mounted = new Map();
let shown = null;
// The last state that could be drawn, and whether a refusal is to be read in the frame that comes.
let good = null;
let refused = false;

field("scene", scenes[0].key, word(scenes.map(({ key }) => key)));

function tabs() {
  for (const scene of scenes) {
    const tab = html("button", { type: "button", class: "tab", "data-scene": scene.key, onclick: () => update({ scene: scene.key }, { step: true }) }, scene.name);
    get("scenes").append(tab);
  }
}

function tools() {
  const theme = html("button", { type: "button", class: "quiet", onclick: toggle });
  const back = html("button", { type: "button", class: "quiet", onclick: undo, hidden: true });
  get("tools").append(back, theme);
  return () => {
    theme.textContent = dark() ? "Light" : "Dark";
    theme.title = dark() ? "Change to a light page" : "Change to a dark page";
    back.hidden = !undoable();
    back.textContent = "Undo";
    back.title = `Undo: ${undoable()}`;
  };
}

function sheet() {
  const handle = get("sheet");
  const fold = (open) => {
    handle.setAttribute("aria-expanded", open);
    get("rail").classList.toggle("open", open);
  };
  handle.addEventListener("click", () => fold(handle.getAttribute("aria-expanded") !== "true"));
  get("rail").addEventListener("keydown", (event) => {
    if (event.key === "Escape") fold(false);
  });
}

function enter(scene) {
  shown?.leave?.();
  ask(null);
  say("");
  if (!mounted.has(scene.key)) mounted.set(scene.key, scene.mount());
  const parts = mounted.get(scene.key);
  get("controls").replaceChildren(...parts.controls);
  get("picture").replaceChildren(...parts.picture);
  document.title = `ictd explorer: ${scene.title}`;
  for (const tab of get("scenes").children) {
    if (tab.dataset.scene === scene.key) {
      tab.setAttribute("aria-current", "page");
      // Narrow screens scroll the names of scenes sideways.
      get("scenes").scrollLeft = tab.offsetLeft - get("scenes").offsetLeft - 24;
    } else tab.removeAttribute("aria-current");
  }
  shown = scene;
}

const works = (question) => {
  try {
    question();
    return true;
  } catch {
    return false;
  }
};

/** What to change where nothing can be drawn: back to what could be, or, of a link, without what cannot be used. */
function remedy() {
  if (good?.scene === state.scene) return [good, "Nothing was changed"];
  const usable = () => processOf({ ...state, window: null });
  if (state.own && !works(usable)) return [{ own: null, chosen: null }, "The drawn process is shown instead"];
  if (state.block && !works(() => model(state))) return [{ block: null }, "θ_* is shown instead"];
  return [null, ""];
}

/** Draws a frame. What a scene cannot show is said in one line, and what could be shown before is shown again. */
function frame(refresh) {
  return (_, changed) => {
    const scene = scenes.find(({ key }) => key === state.scene);
    const entering = scene !== shown;
    if (entering) enter(scene);
    try {
      scene.draw(state, entering ? new Set([...changed, "room"]) : changed);
      good = { ...state };
      const idle = [...changed].every((name) => name === "hover" || name === "room");
      if (!refused && !idle) tell(null);
      refused = false;
    } catch (error) {
      const [patch, words] = remedy();
      good = null;
      if (patch) update(patch);
      refused = patch !== null;
      tell(patch ? `${error.message}. ${words}.` : error.message);
    }
    refresh();
    again();
  };
}

addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing && undoable()) {
    event.preventDefault();
    undo();
  }
});

async function start() {
  // An address is what is shown: the way to the picture must not be one.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    get("picture").focus();
  });
  openDoor();
  tabs();
  sheet();
  const refresh = tools();
  restore();
  await ready;
  subscribe(frame(refresh));
  update({ scene: state.scene });
  frame(refresh)(state, new Set(["scene"]));
  openTour();
}

start().catch((error) => {
  tell(`This browser cannot run the page: ${error.message}`);
});
