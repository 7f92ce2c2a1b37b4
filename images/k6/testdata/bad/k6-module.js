import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
import x from 'k6/x/nothing';
export default function () {}
// exit code: 107
// says: k6/x/nothing
