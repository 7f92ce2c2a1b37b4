import http from 'k6/http';
import { check } from 'k6';
import { rows } from './lib/rows.js';

export const options = { vus: 2, iterations: 50 };

export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/`, { tags: { name: 'list' } });
  check(answer, { 'status is 200': (a) => a.status === 200 });
  check(rows, { 'all rows are there': (all) => all.length === 300000 && all[299999] === '300000,word' });
}
