module laptime.dev/bench/truth/server

go 1.25.0
