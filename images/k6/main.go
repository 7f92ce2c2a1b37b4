// Command k6 is Laptime's load generator: k6 with the output "laptime" and the module
// "k6/x/laptime" compiled in.
package main

import (
	"os"

	"go.k6.io/k6/v2/cmd"

	_ "laptime.dev/k6/internal/generator"
	_ "laptime.dev/k6/internal/output"
)

func main() {
	quiet()
	cmd.Execute()
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
