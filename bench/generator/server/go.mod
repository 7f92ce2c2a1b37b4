// The server that the generator's benchmark drives: nothing but the wire.
module laptime.dev/bench/generator/server

go 1.26.0

require golang.org/x/net v0.60.0

require golang.org/x/text v0.42.0 // indirect
