// Command server answers every request with the same small JSON, as fast as Go lets it: what a
// load generator costs shows best against a server that costs little. It prints the addresses it
// listens on (loopback only), the second one with TLS, and three more for HTTP/2: by net/http without TLS and
// with, and with TLS by nothing but frames. It ends when its standard input does.
package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const body = `{"user_id":"5f1d7a84","username":"ada","email":"ada@example.org"}`

func main() {
	certificate, err := selfSigned()
	if err != nil {
		fatal(err)
	}
	secure := &tls.Config{Certificates: []tls.Certificate{certificate}}
	go accept(listen(), serve)
	go accept(tls.NewListener(listen(), secure), serve)
	for _, encrypted := range []bool{false, true} {
		go serveHTTP2(listen(), certificate, encrypted)
	}
	overFrames := secure.Clone()
	overFrames.NextProtos = []string{"h2"}
	go accept(tls.NewListener(listen(), overFrames), serveFrames)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// listen begins to listen and says where.
func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal(err)
	}
	fmt.Println(listener.Addr())
	return listener
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, err
}

func accept(listener net.Listener, serve func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		go serve(connection)
	}
}

// serveHTTP2 leaves HTTP/2 to net/http.
func serveHTTP2(listener net.Listener, certificate tls.Certificate, encrypted bool) {
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}),
		Protocols: &http.Protocols{},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	if encrypted {
		server.Protocols.SetHTTP2(true)
		fatal(server.ServeTLS(listener, "", ""))
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	fatal(server.Serve(listener))
}

func answer(connection string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s",
		len(body), connection, body)
}

// serve answers requests until the client closes or asks to.
func serve(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	keep, end := answer("keep-alive"), answer("close")
	reader := bufio.NewReaderSize(connection, 4096)
	for {
		closing, err := readRequest(reader)
		if err != nil {
			return
		}
		if closing {
			_, _ = connection.Write(end)
			return
		}
		if _, err := connection.Write(keep); err != nil {
			return
		}
	}
}

// readRequest reads one request and says whether the client wants the connection closed: HTTP/1.0
// without, HTTP/1.1 with a word about it.
func readRequest(reader *bufio.Reader) (closing bool, err error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	closing = bytes.Contains(line, []byte("HTTP/1.0"))
	length := 0
	for {
		if line, err = reader.ReadSlice('\n'); err != nil {
			return false, err
		}
		if len(line) <= 2 {
			_, err = reader.Discard(length)
			return closing, err
		}
		if line[0]|0x20 != 'c' {
			continue
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("content-length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return false, err
			}
			continue
		}
		if !bytes.EqualFold(line[:min(11, len(line))], []byte("connection:")) {
			continue
		}
		value := bytes.ToLower(bytes.TrimSpace(line[11:]))
		switch {
		case bytes.Equal(value, []byte("close")):
			closing = true
		case bytes.Equal(value, []byte("keep-alive")):
			closing = false
		}
	}
}
