package output

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"laptime.dev/k6/internal/result"
)

// maxHosts bounds the other hosts that are told apart.
const maxHosts = 20

const lookupTime = 5 * time.Second

// target is the server under test: what else a script asks is not its doing.
type target struct {
	host      string // with the port; empty: nobody said, so all is the server's
	addresses map[netip.AddrPort]bool
}

func newTarget(address string) target {
	host := hostOf(address)
	if host == "" {
		return target{}
	}
	t := target{host: host, addresses: map[netip.AddrPort]bool{}}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return t
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return t
	}
	// Without an answer hosts are told apart by what the script calls them.
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for _, one := range found {
		t.addresses[netip.AddrPortFrom(one.Unmap(), uint16(number))] = true
	}
	return t
}

// other gives the host that a request went to, empty where that is the target or nobody can know.
// k6 hides the URL of a request that has a name; the address at the other end tells then.
func (t *target) other(s *source, remote net.Addr) string {
	if t.host == "" || s.host == t.host {
		return ""
	}
	at, err := netip.ParseAddrPort(s.host)
	if tcp, ok := remote.(*net.TCPAddr); ok {
		at, err = tcp.AddrPort(), nil
	}
	if err == nil && len(t.addresses) > 0 {
		at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
		switch {
		case t.addresses[at]:
			return ""
		case s.host == "":
			return at.String()
		}
	}
	return s.host
}

// hostOf gives host and port of a URL, empty where it is none.
func hostOf(text string) string {
	if !strings.Contains(text, "://") {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "wss": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// elsewhere counts a request to another host.
func (o *Output) elsewhere(host string, failed bool) {
	count := o.script.OtherHosts[cut(host)]
	switch {
	case count != nil:
	case len(o.script.OtherHosts) < maxHosts:
		count = &result.HostCount{}
		o.script.OtherHosts[cut(host)] = count
	default:
		if o.script.MoreHosts == nil {
			o.script.MoreHosts = &result.HostCount{}
		}
		count = o.script.MoreHosts
	}
	count.Requests++
	if failed {
		count.Errors++
	}
}
