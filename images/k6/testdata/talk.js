// WebSockets: each iteration opens one, says five words one after the other, hears each of them and ends it.
// Nothing is asked by HTTP or gRPC.
import { check } from 'k6';
import { Trend } from 'k6/metrics';
import { WebSocket } from 'k6/websockets';

const URL = __ENV.WS_URL || 'ws://localhost:8080/talk';
const WORDS = ['one', 'two', 'three', 'four', 'five'];

const heardAfter = new Trend('heard_after', true);

export const options = {
  vus: 2,
  iterations: 20,
  thresholds: { ws_connecting: ['p(95)<60000'], ws_msgs_received: ['count==100'] },
};

export default function () {
  const socket = new WebSocket(URL);
  let said = 0;
  let at;
  const say = () => {
    at = Date.now();
    socket.send(WORDS[said]);
  };
  socket.addEventListener('open', say);
  socket.addEventListener('message', (event) => {
    heardAfter.add(Date.now() - at);
    check(event, { 'the same word': (e) => e.data === WORDS[said] });
    said += 1;
    if (said < WORDS.length) {
      say();
    } else {
      socket.close();
    }
  });
}
