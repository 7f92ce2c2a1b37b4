import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export default function () { sleep(600); }
// exit code: 102
// says: still running \d+ s after the end of its duration
