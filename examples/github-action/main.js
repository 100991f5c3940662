// Takes the lock for the steps that follow, or runs one command under it.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { azguard, findHolder, install } = require('./azguard.js');
const { Refused, command, input, leave, maskSecrets, resumeCommands, stopCommands, summarize } = require('./runner.js');

const BUSY = 75;
const LOST = 77;
const SUPERSEDED = 42;
// The lock is held when this runs: it says so, lets the runner read commands again, and becomes the job's own bash.
const UNDER_LOCK = 'printf %s "$AZGUARD_FENCE" > "$1"; printf "::%s::\\n" "$2"; shift 2; exec "$@"';

function readInputs() {
  const names = ['lock', 'on-busy', 'wait', 'slots', 'sequence', 'reason', 'run', 'account', 'version'];
  const given = Object.fromEntries(names.map((name) => [name, input(name)]));
  given['on-busy'] ||= 'wait';
  if (!given.lock) throw new Refused('lock: name the lock, e.g. deploy-prod');
  // It has no option before it that would make it a value.
  if (given.lock.startsWith('-')) throw new Refused('lock: a name does not begin with -');
  if (!['fail', 'skip', 'wait'].includes(given['on-busy'])) throw new Refused('on-busy: fail, skip or wait');
  if (given.account && !/^[a-z0-9]{3,24}$/.test(given.account)) throw new Refused('account: 3 to 24 of a-z and 0-9');
  return given;
}

function optionsOf(given) {
  const wait = given.wait || (given['on-busy'] === 'wait' ? '20m' : '');
  const options = [wait ? `--wait=${wait}` : '--no-wait', `--conflict-exit-code=${BUSY}`];
  for (const name of ['slots', 'sequence', 'reason']) {
    if (given[name]) options.push(`--${name}=${given[name]}`);
  }
  return options;
}

// Look once who holds it, as soon as azguard says that it waits.
function watchHolder(lock, seen) {
  return (words) => {
    if (!seen.holder && words.includes('waiting for')) seen.holder = findHolder(lock);
  };
}

async function hold(given, seen) {
  const begun = Date.now();
  // Into a pipe it prints JSON; to ask for that would make its errors JSON too, which people read here.
  const words = ['lock', 'hold', ...optionsOf(given), given.lock];
  const done = await azguard(words, { said: watchHolder(given.lock, seen) });
  const waited = Math.floor((Date.now() - begun) / 1000);
  if (done.status !== 0) return { status: done.status, acquired: false, fence: '', waited };
  const held = JSON.parse(done.stdout);
  if (held.outcome === 'held') {
    leave('GITHUB_STATE', 'lock', given.lock);
    leave('GITHUB_STATE', 'lease', held.lease_id);
  }
  return { status: 0, acquired: true, fence: String(held.fence ?? ''), waited };
}

async function run(given, seen, token) {
  const begun = Date.now();
  const folder = fs.mkdtempSync(path.join(process.env.RUNNER_TEMP, 'azguard-run-'));
  const script = path.join(folder, 'script.sh');
  const fence = path.join(folder, 'fence');
  fs.writeFileSync(script, `${given.run}\n`);
  const bash = ['bash', '--noprofile', '--norc', '-eo', 'pipefail', script];
  const under = ['bash', '-c', UNDER_LOCK, 'azguard', fence, token, ...bash];
  const words = ['lock', 'run', ...optionsOf(given), given.lock, '--', ...under];
  const done = await azguard(words, { showsStdout: true, said: watchHolder(given.lock, seen) });
  const acquired = fs.existsSync(fence);
  const ended = acquired ? fs.statSync(fence).mtimeMs : Date.now();
  const result = {
    status: done.status,
    acquired,
    fence: acquired ? fs.readFileSync(fence, 'utf8') : '',
    waited: Math.max(0, Math.floor((ended - begun) / 1000)),
  };
  fs.rmSync(folder, { recursive: true });
  return result;
}

function publish(lock, result, holder) {
  const outputs = { acquired: result.acquired, fence: result.fence, 'waited-seconds': result.waited };
  for (const [name, value] of Object.entries({ ...outputs, holder: holder.name, 'holder-url': holder.url })) {
    leave('GITHUB_OUTPUT', name, value);
  }
  const others = [holder.name, holder.url, holder.reason].filter(Boolean).join(', ');
  if (result.acquired) {
    summarize(`Lock {}: held with fence {} after ${result.waited} s.`, lock, result.fence);
    if (others) summarize('It was held before by {}.', others);
    if (result.status === LOST) summarize('It was **lost**, or the command under it exited with {}.', `${LOST}`);
  } else if (result.status === BUSY) {
    summarize('Lock {}: not acquired. It is held by {}.', lock, others || 'others');
  } else {
    summarize('Lock {}: not acquired. azguard exited with {}, see the log.', lock, `${result.status}`);
  }
}

function judge(given, result, holder) {
  const by = [holder.name || 'others', holder.url, holder.reason].filter(Boolean).join(', ');
  if (result.status === 0) return 0;
  if (!result.acquired && result.status === BUSY) {
    const words = `the lock ${given.lock} is held by ${by}`;
    if (given['on-busy'] === 'skip') {
      command('notice', `skipped: ${words}`);
      return 0;
    }
    command('error', words);
  } else if (!result.acquired && result.status === SUPERSEDED && given.sequence) {
    command('error', `superseded: a run with a higher sequence than ${given.sequence} has had the lock ${given.lock}`);
  } else if (result.acquired && result.status === LOST) {
    command('error', `the lock ${given.lock} was lost, or the command under it exited with ${LOST}`);
  } else if (result.acquired) {
    command('error', `the command under the lock ${given.lock} exited with ${result.status}`);
  } else {
    command('error', `the lock ${given.lock} was not acquired: azguard exited with ${result.status}`);
  }
  return result.status;
}

async function main() {
  maskSecrets();
  const given = readInputs();
  install(given.version);
  if (given.account) {
    process.env.AZURE_STORAGE_ACCOUNT = given.account;
    leave('GITHUB_ENV', 'AZURE_STORAGE_ACCOUNT', given.account);
    leave('GITHUB_STATE', 'account', given.account);
  }
  const seen = {};
  const token = stopCommands();
  let result;
  try {
    result = await (given.run ? run(given, seen, token) : hold(given, seen));
  } finally {
    resumeCommands(token);
  }
  const busy = !result.acquired && result.status === BUSY;
  const holder = (busy && findHolder(given.lock)) || seen.holder || { name: '', url: '', reason: '' };
  publish(given.lock, result, holder);
  if (result.acquired && !given.run) process.stdout.write(`the lock is held, with fence ${result.fence}\n`);
  return judge(given, result, holder);
}

main()
  .catch((error) => {
    command('error', error instanceof Refused ? error.message : String(error.stack));
    return 1;
  })
  .then((status) => {
    process.exitCode = status;
  });
