import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export default function () { sleep(600); }
// exit code: 102
// environment: LAPTIME_DURATION_SECONDS=0.5 LAPTIME_GRACE_SECONDS=1
// says: GeneratorTimedOut.*still running 1 s after the end of its duration
