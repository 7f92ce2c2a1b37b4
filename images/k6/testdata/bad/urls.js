import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { vus: 4, iterations: 3000 };
export default function () { http.get(`${__ENV.TARGET}/${exec.scenario.iterationInTest}`); }
// exit code: 0
