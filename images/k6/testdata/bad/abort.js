import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export default function () { exec.test.abort('enough'); }
// exit code: 108
// says: test aborted: enough
