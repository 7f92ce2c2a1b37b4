import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
const kept = [];
export const options = { vus: 1, duration: '60s' };
export default function () { for (let i = 0; i < 1000; i++) { kept.push('x'.repeat(10000) + kept.length); } }
// exit code: 107
// environment: LAPTIME_MEMORY_BYTES=400000000
// says: ScriptFailed.*the script used \d+ MiB of memory, and 381 MiB are
