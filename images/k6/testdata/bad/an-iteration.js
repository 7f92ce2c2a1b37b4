import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { vus: 5, iterations: 1000 };
export default function () {
  if (exec.scenario.iterationInTest === 500) { JSON.parse('<'); }
}
// exit code: 0
