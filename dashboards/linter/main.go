// Lints dashboards by the rules of Grafana's dashboard linter; warnings count as errors.
//
// usage: go run . CONFIGURATION DASHBOARD...
//
// Its own program could write dashboards too, for which it has a client for each cloud.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/dashboard-linter/lint"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: linter CONFIGURATION DASHBOARD...")
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := check(os.Args[1], file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

// check prints what breaks a rule in a dashboard, and returns an error if anything does.
func check(configuration, file string) error {
	// A configuration that is not there would be taken for an empty one.
	if _, err := os.Stat(configuration); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	dashboard, err := lint.NewDashboard(text)
	if err != nil {
		return err
	}
	config := lint.NewConfigurationFile()
	if err := config.Load(configuration); err != nil {
		return err
	}
	rules := lint.NewRuleSet()
	results, err := rules.Lint([]lint.Dashboard{dashboard})
	if err != nil {
		return err
	}
	results.Configure(config)
	if results.MaximumSeverity() >= lint.Warning {
		results.ReportByRule()
		return fmt.Errorf("it breaks rules")
	}
	return nil
}
