module laptime.dev/bench/truth/server

go 1.26.0

toolchain go1.26.8

require golang.org/x/net v0.60.0

require golang.org/x/text v0.43.0 // indirect
