package spec

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
)

// TLS says whom to trust.
type TLS struct {
	CA         string `json:"ca"`         // certificates (PEM) to trust, and no others; absent: those of the machine
	ServerName string `json:"serverName"` // that the certificate is to have; absent: the target's
	Insecure   bool   `json:"insecure"`   // any certificate will do
}

// config is nil where the target has no TLS.
func (t *TLS) config(target *url.URL, protocol string) (*tls.Config, error) {
	if target.Scheme != "https" {
		return nil, nil
	}
	// One protocol alone; no session is resumed, so that each connection costs what a new client's does.
	config := &tls.Config{ServerName: target.Hostname(), NextProtos: []string{protocol}}
	if t == nil {
		return config, nil
	}
	if t.ServerName != "" {
		config.ServerName = t.ServerName
	}
	config.InsecureSkipVerify = t.Insecure
	if t.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("tls.ca: no certificate in it; write PEM, which begins with -----BEGIN CERTIFICATE-----")
		}
	}
	return config, nil
}

// Secured is how connections are encrypted; nil: they are not.
func (t *Trial) Secured() *tls.Config { return t.secured }
