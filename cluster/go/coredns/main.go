// Command coredns is CoreDNS with only the plugins that the embedded cluster needs: it answers for
// the Services and Pods of the cluster and refuses every other name at once, since no route leads
// out of the cluster. Fewer plugins make the build minutes shorter than that of the official binary.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// The order in which a query passes the plugins: the one of the official build.
func init() {
	dnsserver.Directives = []string{"bind", "ready", "health", "errors", "cache", "template", "kubernetes"}
}

func main() {
	coremain.Run()
}
