import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { vuss: 7 };
export default function () {}
// exit code: 0
// says: unknown field.*vuss
