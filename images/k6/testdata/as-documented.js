// A script as k6's documentation shows them: stages, setup, a group, checks, thresholds, metrics of
// its own and a pause. One of its checks can never hold, and each of its thresholds is missed.
import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';

const BASE_URL = __ENV.BASE_URL || 'https://quickpizza.grafana.com';

const listing = new Trend('listing_time', true);
const listed = new Counter('listed');
const complete = new Rate('complete');

export const options = {
  stages: [
    { duration: '1s', target: 5 },
    { duration: '2s', target: 5 },
    { duration: '1s', target: 0 },
  ],
  thresholds: {
    http_req_duration: ['p(95)<0.001'],
    listing_time: ['avg<0.001'],
    complete: ['rate>0.99'],
  },
};

export function setup() {
  const answer = http.get(`${BASE_URL}/`);
  return { began: answer.status };
}

export default function (data) {
  group('listing', () => {
    const answer = http.get(`${BASE_URL}/`, { tags: { name: 'list' } });
    listing.add(answer.timings.duration);
    listed.add(1);
    complete.add(false);
    check(answer, {
      'status is 200': (a) => a.status === data.began,
      'never holds': (a) => a.status === 299,
    });
  });
  sleep(0.02);
}
