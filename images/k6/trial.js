// The built-in scenarios: one VU hands the whole trial to the native request loop.
import laptime from 'k6/x/laptime';

export const options = {
  scenarios: {
    trial: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 1,
      maxDuration: '72h', // the trial ends itself
      gracefulStop: '0s', // and stops at once when it is told to
    },
  },
};

export default function () {
  laptime.trial(__ENV.LAPTIME_TRIAL);
}
