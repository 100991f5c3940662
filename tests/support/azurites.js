// Azurites in one process: node azurites.js SOCKET AZURITE.JS OPTION...
//
// Each connection to the socket gets an empty Azurite of its own and is told its ports, in JSON. The Azurite ends with
// the connection, and the process with the last one, or if none came within a minute.
"use strict";
const net = require("net");

const [socket, script, ...options] = process.argv.slice(2);
const ANY_PORT = ["--blobPort", "0", "--queuePort", "0", "--tablePort", "0"];
const LISTENING = /^Azurite (\w+) service is successfully listening at http:\/\/127\.0\.0\.1:(\d+)$/;
const LONGEST_WAIT_MS = 60_000;

// Azurite reads its options when its script runs, says where it listens, and last says how it is to be ended.
function start() {
  return new Promise((resolve) => {
    const ports = {};
    console.log = (line) => {
      const said = LISTENING.exec(line);
      if (said) ports[said[1].toLowerCase()] = Number(said[2]);
    };
    process.once = (event, end) => {
      if (event === "SIGTERM") resolve({ ports, end });
      return process;
    };
    process.argv = [process.argv[0], script, ...options, ...ANY_PORT];
    delete require.cache[script];
    require(script);
  });
}

let count = 0;
let last = Promise.resolve();
const server = net.createServer((connection) => {
  count += 1;
  clearTimeout(waiting);
  const started = (last = last.then(start));
  started.then(({ ports }) => connection.write(JSON.stringify(ports) + "\n"));
  connection.resume();
  connection.on("error", () => {});
  connection.on("close", async () => {
    (await started).end();
    count -= 1;
    if (count === 0) process.exit(0);
  });
});
server.listen(socket);
const waiting = setTimeout(() => process.exit(0), LONGEST_WAIT_MS);
