module laptime.dev/upstream

go 1.26
