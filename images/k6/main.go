// Command k6 is Laptime's load generator: k6 with the output "laptime" and the module
// "k6/x/laptime" compiled in.
package main

import (
	"os"

	"go.k6.io/k6/v2/cmd"

	"laptime.dev/k6/internal/generator"
	"laptime.dev/k6/internal/output"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/sharing"
)

func main() {
	quiet()
	share()
	if len(os.Args) > 1 && os.Args[1] == "run" {
		output.Watch()
	}
	cmd.Execute()
}

// share has k6 run its part of a script that several generators run.
func share() {
	place, err := sharing.Read(os.Getenv)
	if err == nil {
		os.Args, err = place.Arguments(os.Args)
	}
	if err != nil {
		result.GiveUp("InvalidTrial", err, generator.ExitInvalidTrial)
	}
}

// quiet keeps k6 from talking to anything but the target: no usage report, no download of
// extensions. What the environment says explicitly stands.
func quiet() {
	for name, value := range map[string]string{
		"K6_NO_USAGE_REPORT":           "true",
		"K6_AUTO_EXTENSION_RESOLUTION": "false",
	} {
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, value) // fails only for malformed names
		}
	}
}
