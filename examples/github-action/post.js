// Releases the lock that main has taken, and no other's.
'use strict';

const path = require('node:path');
const { azguard } = require('./azguard.js');
const { command, maskSecrets, resumeCommands, stopCommands, summarize } = require('./runner.js');

const LOST = 77;

async function post() {
  const { STATE_lock: lock, STATE_lease: lease, STATE_account: account, STATE_bin: bin } = process.env;
  if (!lock || !lease) {
    process.stdout.write('nothing to release\n');
    return 0;
  }
  maskSecrets();
  if (account) process.env.AZURE_STORAGE_ACCOUNT = account;
  if (bin) process.env.PATH = bin + path.delimiter + process.env.PATH;
  const token = stopCommands();
  const { status } = await azguard(['lock', 'release', lock, `--lease-id=${lease}`, '-o', 'none']);
  resumeCommands(token);
  if (status === 0) {
    summarize('Lock {}: released.', lock);
  } else if (status === LOST) {
    command('error', `the lock ${lock} was lost before its release: what ran under it may have run beside another holder`);
    summarize('Lock {}: **lost** before its release. What ran under it may have run beside another holder.', lock);
  } else {
    command('error', `the lock ${lock} may not have been released (azguard exited with ${status}); it ends by itself`);
    summarize('Lock {}: perhaps not released; it ends by itself, at most 60 s after the job.', lock);
  }
  return status === 0 ? 0 : 1;
}

post()
  .catch((error) => {
    command('error', String(error.stack));
    return 1;
  })
  .then((status) => {
    process.exitCode = status;
  });
