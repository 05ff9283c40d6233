#!/bin/sh
# PACKAGE0029 nodejs: runs promises, workers, streams, child processes and a server on a Unix socket
which node
cat >program.mjs <<'END'
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import zlib from 'node:zlib';
import { Worker } from 'node:worker_threads';
console.log(2n ** 100n, [3, 1, 2].sort(), { a: { b: [1, null] } });
console.log(createHash('sha256').update('x').digest('hex').slice(0, 16), zlib.gunzipSync(zlib.gzipSync('text')).toString());
console.log(execFileSync('sh', ['-c', 'echo from a shell']).toString().trim());
const child = spawn('cat'); child.stdin.end('through cat'); for await (const part of child.stdout) console.log(part.toString());
await fs.writeFile('x', 'y'.repeat(100000)); console.log((await fs.stat('x')).size);
const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true });
console.log(await new Promise(done => worker.on('message', done)));
const server = http.createServer((request, response) => response.end(`path ${request.url}`));
await new Promise(done => server.listen('socket', done));
const body = await new Promise(done => http.get({ socketPath: 'socket', path: '/thing' }, async response => { let all = ''; for await (const part of response) all += part; done(all); }));
console.log(body); server.close();
const watcher = fs.watch('.'); setTimeout(() => fs.writeFile('new', ''), 200);
for await (const event of watcher) { console.log(event.filename); break; }
console.log(await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('no'))]).then(all => all.map(one => one.status)));
process.exitCode = 3;
END
node program.mjs
echo "status $?"
node -e 'throw new TypeError("wrong")' 2>&1 | grep Error:
node -p 'process.platform + " " + Intl.NumberFormat("en").format(1234567)'
