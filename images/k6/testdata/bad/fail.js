import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export default function () { exec.test.fail('wrong'); }
// exit code: 110
// says: test run was marked as failed
