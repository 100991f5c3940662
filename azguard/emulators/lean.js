// Preloaded into Azurite (NODE_OPTIONS --require): spares it 40 % of the processor time of its start.
//
// It loads two packages that it never uses here: telemetry is off, and there is no SQL database. Each is an empty class
// instead, of which everything can be asked and inherited.
"use strict";
const Module = require("module");

const UNUSED = new Set(["applicationinsights", "sequelize"]);
const nothing = new Proxy(class {}, { get: (known, name) => (name in known ? known[name] : nothing) });
const load = Module._load;
Module._load = function (name, ...rest) {
  return UNUSED.has(name) ? nothing : load.call(this, name, ...rest);
};
