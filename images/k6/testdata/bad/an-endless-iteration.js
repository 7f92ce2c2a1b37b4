import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { scenarios: { one: { executor: 'constant-vus', vus: 1, duration: '1s', gracefulStop: '1s' } } };
export default function () { while (true) {} }
// exit code: 0
// says: No script iterations fully finished
