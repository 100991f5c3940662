// Preloaded into Azurite and npm (NODE_OPTIONS --require): ends them when the process that started them has ended.
//
// Standard input is a pipe whose other end the starter holds. However the starter dies, kill -9 included, the
// system closes that end, and we end ourselves. A byte on the pipe means: stay, the starter leaves on purpose.
// A thread watches, because Azurite's garbage collector can freeze the main thread for minutes.
"use strict";
const { Worker, isMainThread } = require("worker_threads");

const watch = `
  const { Socket } = require("net");
  const pipe = new Socket({ fd: 0, readable: true, writable: false });
  let stay = false;
  pipe.on("data", () => { stay = true; });
  pipe.on("error", () => {});
  pipe.on("close", () => { if (!stay) process.kill(process.pid, "SIGKILL"); });
`;

if (isMainThread) new Worker(watch, { eval: true }).unref();
