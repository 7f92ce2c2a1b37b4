// Each executor of k6 at once, with groups in groups, tags and every kind of metric.
import http from 'k6/http';
import exec from 'k6/execution';
import { check, group, sleep } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

const sizes = new Trend('sizes');
const negative = new Trend('negative');
const half = new Counter('half');
const highest = new Gauge('highest');
const even = new Rate('even');

const shares = { preAllocatedVUs: 2, maxVUs: 3, duration: '1s' };
export const options = {
  scenarios: {
    shared: { executor: 'shared-iterations', vus: 3, iterations: 60 },
    each: { executor: 'per-vu-iterations', vus: 2, iterations: 20 },
    constant: { executor: 'constant-vus', vus: 2, duration: '1s' },
    ramping: { executor: 'ramping-vus', stages: [{ duration: '500ms', target: 3 }, { duration: '500ms', target: 0 }] },
    rate: { executor: 'constant-arrival-rate', rate: 40, ...shares },
    // More than its virtual users can do: some are dropped.
    steep: {
      executor: 'ramping-arrival-rate', startRate: 50, preAllocatedVUs: 1, maxVUs: 1, stages: [{ duration: '1s', target: 400 }],
    },
  },
  thresholds: {
    'http_req_duration{scenario:rate}': ['p(95)<60000', 'p(95)<0.001'],
    'http_req_failed{kind:missing}': ['rate==1'],
    'iterations{scenario:shared}': ['count==60', 'count<60'],
    'iteration_duration{scenario:each}': ['avg<60000'],
    'group_duration{group:::outer::inner}': ['max<60000', 'med<0.0001'],
    'checks{part:b}': ['rate==1'],
    'sizes{scenario:each}': ['p(99)>=1', 'min<0'],
    negative: ['max<0', 'avg<-1000'],
    half: ['count>10'],
    even: ['rate>0.4', 'rate>0.6'],
  },
};

export function setup() {
  return http.get(`${__ENV.BASE_URL}/setup`).status;
}

export default function (status) {
  const number = exec.scenario.iterationInTest;
  group('outer', () => {
    const listed = http.get(`${__ENV.BASE_URL}/list?n=${number % 7}`, { tags: { name: 'list', kind: 'list' } });
    check(listed, { right: (answer) => answer.status === status, 'an odd one': () => number % 2 === 1 }, { part: 'a' });
    group('inner', () => {
      const both = http.batch([['GET', `${__ENV.BASE_URL}/missing`, null, { tags: { kind: 'missing' } }], `${__ENV.BASE_URL}/other`]);
      check(both, { 'not there': (answers) => answers[0].status === 404 }, { part: 'b' });
    });
  });
  sizes.add(1 + (number % 50) * 1000.5);
  negative.add(-1 - number / 3);
  half.add(0.5);
  highest.add(number);
  even.add(number % 2 === 0);
  sleep(0.01);
}
