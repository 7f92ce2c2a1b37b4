// The server that bench-precision compares with itself: a set amount of work for each request.
module laptime.dev/bench/precision/server

go 1.25.0
