import { SharedArray } from 'k6/data';

export const rows = new SharedArray('rows', () => open('../rows.csv').trim().split('\n'));
