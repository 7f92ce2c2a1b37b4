import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { vus: 'many' };
export default function () {}
// exit code: 104
// says: many|vus
