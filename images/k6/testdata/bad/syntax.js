import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export default function () { let 1a; }
// exit code: 107
// says: own\.js: Line 2:\d+ Unexpected token
