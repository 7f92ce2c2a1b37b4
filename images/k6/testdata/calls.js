// gRPC: each iteration is a call. With STREAMS it also says three words in a stream and hears each of them.
import { check } from 'k6';
import grpc from 'k6/net/grpc';

const ADDRESS = __ENV.GRPC_ADDR || 'localhost:8080';

const client = new grpc.Client();
client.load([], 'echo.proto');

export const options = {
  vus: 2,
  iterations: 100,
  thresholds: { grpc_req_duration: ['p(95)<60000', 'min>=0'] },
};

let connected = false;

export default function () {
  if (!connected) {
    client.connect(ADDRESS, { plaintext: true });
    connected = true;
  }
  const answer = client.invoke('echo.Echo/Say', { text: 'a word' }, { metadata: status() });
  check(answer, { 'the same word': (a) => a.status === grpc.StatusOK && a.message.text === 'a word' });
  if (__ENV.STREAMS) {
    discuss();
  }
}

// Each tenth call is refused where the server is asked to by WRONG, a number of gRPC.
function status() {
  return __ENV.WRONG && __ITER % 10 === 0 ? { 'x-status': __ENV.WRONG } : {};
}

function discuss() {
  const stream = new grpc.Stream(client, 'echo.Echo/Discuss');
  const words = ['one', 'two', 'three'];
  stream.on('data', (word) => {
    check(word, { 'the same word in a stream': (w) => words.includes(w.text) });
  });
  words.forEach((text) => stream.write({ text }));
  stream.end();
}
