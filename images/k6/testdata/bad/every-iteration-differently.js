import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { iterations: 200 };
export default function () { throw new Error(`no ${exec.scenario.iterationInTest}`); }
// exit code: 0
