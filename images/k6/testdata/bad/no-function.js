import http from 'k6/http'; import exec from 'k6/execution'; import { Counter } from 'k6/metrics'; import { sleep } from 'k6';
export const options = { vus: 1 };
// exit code: 255
// says: function 'default' not found in exports|no exported functions
