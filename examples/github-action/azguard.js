// Runs azguard, and installs it where it is missing. All values are arguments of their own; no shell reads them.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { Refused, leave } = require('./runner.js');

const PYTHONS = ['python3', 'python', 'python3.14', 'python3.13', 'python3.12', 'python3.11'];
const RECENT = 'import sys; sys.exit(sys.version_info < (3, 11))';

function hasAzguard() {
  return spawnSync('azguard', ['--version'], { stdio: 'ignore' }).status === 0;
}

// The runner has downloaded the action's whole repository, at the very commit that `uses:` names.
function source(version) {
  if (!version) return path.resolve(__dirname, '..', '..');
  if (version.endsWith('.whl')) return findWheel(version);
  if (/^azguard==[0-9A-Za-z.!+]+$/.test(version)) return version;
  if (!/^[A-Za-z0-9][A-Za-z0-9._/+-]*$/.test(version)) throw new Refused('version: no branch, tag or commit');
  const repository = process.env.GITHUB_ACTION_REPOSITORY;
  if (!repository) throw new Refused('version: this action is not from a repository; leave it out');
  return `git+${process.env.GITHUB_SERVER_URL || 'https://github.com'}/${repository}@${version}`;
}

// A wheel of the job's own checkout, or of an earlier step: nothing is downloaded but what it needs.
function findWheel(name) {
  const wheel = path.resolve(process.env.GITHUB_WORKSPACE || '.', name);
  if (!fs.existsSync(wheel)) throw new Refused(`version: there is no ${wheel}`);
  return wheel;
}

function install(version) {
  if (hasAzguard()) return;
  const from = source(version);
  const python = PYTHONS.find((name) => spawnSync(name, ['-c', RECENT], { stdio: 'ignore' }).status === 0);
  if (!python) throw new Refused('azguard needs Python 3.11 or later: add actions/setup-python before this step');
  const folder = path.join(process.env.RUNNER_TEMP, 'azguard-venv');
  const bin = path.join(folder, 'bin');
  const steps = [
    [python, ['-m', 'venv', folder]],
    [path.join(bin, 'python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', from]],
  ];
  for (const [program, words] of steps) {
    const done = spawnSync(program, words, { stdio: ['ignore', 'inherit', 'inherit'] });
    if (done.status !== 0) throw new Refused(`azguard could not be installed: ${program} ${words.join(' ')}`);
  }
  process.env.PATH = bin + path.delimiter + process.env.PATH;
  // Later steps run `azguard lock check`.
  if (process.env.GITHUB_PATH) fs.appendFileSync(process.env.GITHUB_PATH, `${bin}\n`);
  leave('GITHUB_STATE', 'bin', bin);
}

// Run azguard; resolve to its exit status and stdout. What it says is shown as it says it.
function azguard(words, { showsStdout = false, said = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn('azguard', words, { stdio: ['ignore', 'pipe', 'pipe'] });
    const pass = (signal) => child.kill(signal);
    process.on('SIGINT', pass).on('SIGTERM', pass);
    const pieces = [];
    child.stdout.on('data', (piece) => (showsStdout ? process.stdout.write(piece) : pieces.push(piece)));
    child.stderr.on('data', (piece) => {
      process.stdout.write(piece);
      said(piece.toString());
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.off('SIGINT', pass).off('SIGTERM', pass);
      resolve({ status: code ?? (signal === 'SIGINT' ? 130 : 143), stdout: Buffer.concat(pieces).toString() });
    });
  });
}

// Return who holds a lock; with slots, the first of them. It is only for people to read: none is no failure.
function findHolder(lock) {
  const done = spawnSync('azguard', ['lock', 'show', lock, '-o', 'json', '--quiet'], { encoding: 'utf8' });
  try {
    const held = [].concat(JSON.parse(done.stdout)).find((each) => each.held);
    const run = held?.owner?.run || '';
    return { name: held?.held_by || '', url: /^https?:\/\/\S+$/.test(run) ? run : '', reason: held?.owner?.reason || '' };
  } catch {
    return { name: '', url: '', reason: '' };
  }
}

module.exports = { azguard, findHolder, install };
