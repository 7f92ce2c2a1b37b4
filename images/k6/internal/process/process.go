// Package process describes what this process uses.
package process

import (
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/result"
)

// CPU is the processor time the process has used since it began.
func CPU() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Describe gives the generator's part of a result.
func Describe(cpu, wall time.Duration) result.Generator {
	g := result.Generator{
		CPUSeconds: cpu.Seconds(), WallSeconds: wall.Seconds(),
		MaxProcs: runtime.GOMAXPROCS(0), Version: version(),
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err == nil {
		g.PeakMemoryBytes = used.Maxrss * 1024
	}
	return g
}

// version is that of the k6 compiled in.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "go.k6.io/k6/v2" {
				return "k6 " + dependency.Version
			}
		}
	}
	return "k6"
}
