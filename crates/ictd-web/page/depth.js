// Scene 2's numbers: eigenvalues and errors at once, the certificate from a worker.

import { call, inWorker } from "ictd/engine";
import { sampleOf } from "ictd/model";
import { redraw } from "ictd/state";

/** The options of a certificate. */
export function certifyOptions(state) {
  const { layers, gamma, kernel, tau: temperature, alpha: step_size, unit: unit_norm } = state;
  return { layers, gamma, kernel, temperature, step_size, unit_norm };
}

/** The same as a command, for the context in a file. */
export function certifyCommand({ layers, gamma, kernel, temperature, step_size, unit_norm }) {
  return `ictd certify --input context.json --gamma ${gamma} --kernel ${kernel} --temperature ${temperature} --step-size ${step_size} --layers ${layers}${unit_norm ? " --unit-norm" : ""}`;
}

let spectrum = { key: null };
let certificate = { key: null, value: null, error: null };
let busy = false;

/** A certificate tries many changes, which takes longer than a frame; only the newest question is asked. */
function certify(key, context, options) {
  if (busy || certificate.key === key) return;
  busy = true;
  inWorker("certify", { context, options })
    .then(
      (value) => ({ key, value, error: null }),
      (error) => ({ key, value: certificate.value, error: error.message }),
    )
    .then((answer) => {
      certificate = answer;
      busy = false;
      redraw();
    });
}

/** `{context, options, spectrum, certificate, fresh}`: the certificate is that of an earlier question until `fresh`. */
export function depthOf(state) {
  const { context } = sampleOf(state);
  const options = certifyOptions(state);
  const key = JSON.stringify([context, options]);
  if (spectrum.key !== key) spectrum = { key, value: call("spectrum", { context, options }) };
  certify(key, context, options);
  return {
    key,
    context,
    options,
    spectrum: spectrum.value,
    certificate: certificate.value,
    error: certificate.error,
    fresh: certificate.key === key,
  };
}
