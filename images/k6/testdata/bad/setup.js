import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export function setup() {
  null.x;
}
export default function () {}
// exit code: 107
// says: TypeError: .*own\.js:3:
