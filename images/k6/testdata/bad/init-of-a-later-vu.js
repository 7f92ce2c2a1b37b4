import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
if (__VU === 1) { throw new Error('no VU'); }
export default function () {}
// exit code: 107
// says: Error: no VU.*own\.js:2:
