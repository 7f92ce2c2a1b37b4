import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
const c = new Counter('counted');
export const options = { vus: 4, iterations: 1000 };
export default function () { for (let i = 0; i < 100; i++) { c.add(1, { one: `${exec.scenario.iterationInTest}-${i}` }); } }
// exit code: 0
// says: The test has generated metrics with 1000\d\d unique time series
