import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { thresholds: { http_req_duration: ['p(95) is 3'] } };
export default function () {}
// exit code: 104
// says: p\(95\) is 3
