// The complex plane with the unit circle: where eigenvalues are.

import { Picture, TEXT, num } from "ictd/draw";
import { reads } from "ictd/explain";
import { tick, ticks } from "ictd/chart";

/** A complex plane. `explain(index)` says what a point is. */
export class Plane {
  constructor({ title, explain, className = "" }) {
    this.picture = new Picture({ title, className: `plane ${className}`, numbers: () => [["re", "im"], ...this.points] });
    this.root = this.picture.root;
    this.points = [];
    this.back = this.picture.layer("axes");
    this.front = this.picture.layer("points");
    reads(this.picture, {
      at: (element) => (element.dataset.index === undefined ? null : Number(element.dataset.index)),
      move: (place, down, right) => Math.max(0, Math.min(this.points.length - 1, (place ?? 0) + down + right)),
      explain: (place) => (this.points[place] ? explain(place) : null),
    });
  }

  /** Draws points `[re, im]`; `reach` is how far from 0 is shown, at least the unit circle. */
  draw(points, { reach = 1 } = {}) {
    const { picture } = this;
    if (picture.width === 0) return;
    this.points = points;
    const side = Math.max(240, Math.min(picture.width, 360));
    const middle = side / 2;
    const most = Math.max(1.15, reach * 1.08);
    const unit = (middle - TEXT - 6) / most;
    picture.size(side, side);
    const { back, front } = this;
    back.begin();
    back.put("disc", "circle", { class: "disc", cx: middle, cy: middle, r: unit });
    back.put("real", "line", { class: "axis", x1: 8, x2: side - 8, y1: middle, y2: middle });
    back.put("imaginary", "line", { class: "axis", x1: middle, x2: middle, y1: 8, y2: side - 8 });
    back.put("circle", "circle", { class: "unit", cx: middle, cy: middle, r: unit });
    for (const value of ticks(-most, most, 4)) {
      if (value === 0) continue;
      const text = tick(value);
      back.put(`re${value}`, "text", { class: "name middle soft", x: middle + value * unit, y: middle + TEXT + 2 }, text);
      back.put(`im${value}`, "text", { class: "name end soft", x: middle - 5, y: middle - value * unit + 4 }, `${text}i`);
    }
    back.end();
    front.begin();
    points.forEach(([re, im], index) => {
      const size = Math.hypot(re, im);
      // What lies far outside is drawn at the edge rather than left out.
      const pull = size > most ? most / size : 1;
      front.put(index, "circle", {
        class: `dot moves ${size < 1 ? "inside" : "outside"}`,
        cx: middle + re * unit * pull,
        cy: middle - im * unit * pull,
        r: 5,
        "data-index": index,
        "data-value": size,
        "data-re": re,
        "data-im": im,
      });
    });
    front.end();
    const outside = points.filter(([re, im]) => Math.hypot(re, im) >= 1).length;
    picture.summary(
      `${points.length} eigenvalues, ${outside} of them on or outside the unit circle; the largest has size ${num(Math.max(0, ...points.map(([re, im]) => Math.hypot(re, im))))}`,
    );
  }
}
