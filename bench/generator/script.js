// A script with all that Laptime counts: a group, checks, metrics of its own, tags and thresholds.
import http from 'k6/http';
import { check, group } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';

const listing = new Trend('listing_time', true);
const listed = new Counter('listed');
const complete = new Rate('complete');

export const options = {
  scenarios: {
    measured: {
      executor: 'shared-iterations',
      vus: Number(__ENV.CONNECTIONS),
      iterations: Number(__ENV.ITERATIONS),
      maxDuration: '10m',
    },
  },
  thresholds: {
    http_req_duration: ['p(95)<60000'],
    'http_req_duration{name:list}': ['p(99)<60000', 'max<60000'],
    'checks{check:status is 200}': ['rate>0.99'],
    listing_time: ['avg<60000'],
    complete: ['rate>0.99'],
  },
};

export default function () {
  group('listing', () => {
    const answer = http.get(`${__ENV.TARGET}/`, { tags: { name: 'list', team: 'shop' } });
    listing.add(answer.timings.duration);
    listed.add(1, { page: 'first' });
    complete.add(true);
    check(answer, {
      'status is 200': (a) => a.status === 200,
      'ada is there': (a) => a.body.includes('ada'),
    });
  });
}
