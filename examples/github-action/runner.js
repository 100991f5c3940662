// What the runner gives to a step, and what it reads of it.
'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');

const SECRETS = ['AZURE_STORAGE_CONNECTION_STRING', 'AZURE_STORAGE_KEY', 'AZURE_STORAGE_SAS_TOKEN', 'AZURE_CLIENT_SECRET'];

class Refused extends Error {}

function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] || '').trim();
}

// The runner reads commands from lines of stdout; these three would end or split one.
function escape(text) {
  return text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
}

function command(name, text) {
  process.stdout.write(`::${name}::${escape(text)}\n`);
}

// What others have written must not be read as a command: until the token, none is.
function stopCommands() {
  const token = crypto.randomUUID();
  command('stop-commands', token);
  return token;
}

function resumeCommands(token) {
  command(token, '');
}

// The runner hides whole secrets by itself; a part of one only if it is told.
function maskSecrets() {
  for (const value of SECRETS.map((name) => process.env[name] || '')) {
    const parts = value.match(/(?<=AccountKey=|SharedAccessSignature=)[^;]+/g) || [];
    for (const secret of [value, ...parts].filter((part) => part.trim())) command('add-mask', secret);
  }
}

// Append name and value to a file of the runner's; no value can end itself.
function leave(variable, name, value) {
  const file = process.env[variable];
  if (!file) return;
  const end = `azguard-${crypto.randomUUID()}`;
  fs.appendFileSync(file, `${name}<<${end}\n${value}\n${end}\n`);
}

function inMarkdown(text) {
  const bare = text.replace(/[\r\n]+/g, ' ');
  return bare.replace(/[&<>"'`*_~[\]()|\\!#@:]/g, (found) => `&#${found.charCodeAt(0)};`);
}

// Write one line of the job's summary: its words are ours, `values` may come from others.
function summarize(words, ...values) {
  const file = process.env.GITHUB_STEP_SUMMARY;
  if (!file) return;
  const shown = values.map(inMarkdown);
  fs.appendFileSync(file, `${words.replace(/\{\}/g, () => shown.shift())}\n\n`);
}

module.exports = { Refused, command, input, leave, maskSecrets, resumeCommands, stopCommands, summarize };
