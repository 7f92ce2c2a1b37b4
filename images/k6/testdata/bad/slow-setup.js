import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { setupTimeout: '1s' };
export function setup() { while (true) {} }
export default function () {}
// exit code: 100
// says: setup\(\) execution timed out after 1 seconds
