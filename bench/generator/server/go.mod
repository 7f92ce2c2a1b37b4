// The server that the generator's benchmark drives: nothing but the wire.
module laptime.dev/bench/generator/server

go 1.25.0
