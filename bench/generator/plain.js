// What a k6 user would write: the other side of the comparison.
import http from 'k6/http';

export const options = {
  discardResponseBodies: true,
  noConnectionReuse: __ENV.KEEP_ALIVE === 'false',
  scenarios: {
    measured: {
      executor: 'constant-vus',
      vus: Number(__ENV.CONNECTIONS),
      duration: `${__ENV.SECONDS}s`,
      gracefulStop: '0s',
    },
  },
};

export default function () {
  http.get(`${__ENV.TARGET}/`, { tags: { name: 'list' } });
}
