import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
throw new Error('no init');
export default function () {}
// exit code: 107
// says: Error: no init.*own\.js:2:
