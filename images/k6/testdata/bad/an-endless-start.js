import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
while (true) {}
export default function () {}
// exit code: 107
// environment: LAPTIME_READING_SECONDS=1
// says: ScriptFailed.*reading the script has not come to its end
