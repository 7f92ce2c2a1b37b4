import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
while (true) {}
export default function () {}
// exit code: 107
// says: reading the script has not come to its end
