package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// protocol is how connections are spoken to.
type protocol struct {
	second bool        // HTTP/2
	pieces int         // of an answer over HTTP/1.1: more than one leave as chunks, evenly over its time
	tls    *tls.Config // nil: none
	// When each connection was asked for.
	callers *callers
}

func secured(second bool) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	offered := "http/1.1"
	if second {
		offered = http2.NextProtoTLS
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}}, NextProtos: []string{offered},
	}, err
}

// wire is a socket that knows when the kernel took in what was read last, and when it was given
// what was written last.
type wire struct {
	fd            int
	control       [128]byte
	arrived, left int64
}

// Read implements net.Conn.
func (w *wire) Read(to []byte) (int, error) {
	for {
		n, controls, _, _, err := syscall.Recvmsg(w.fd, to, w.control[:], 0)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			w.arrived = received(w.control[:controls])
			return n, nil
		}
	}
}

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	w.left = now()
	for sent := 0; sent < len(b); {
		n, err := syscall.Write(w.fd, b[sent:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

// Close, LocalAddr, RemoteAddr, SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn.
func (*wire) Close() error                     { return nil }
func (*wire) LocalAddr() net.Addr              { return nil }
func (*wire) RemoteAddr() net.Addr             { return nil }
func (*wire) SetDeadline(time.Time) error      { return nil }
func (*wire) SetReadDeadline(time.Time) error  { return nil }
func (*wire) SetWriteDeadline(time.Time) error { return nil }

// serve answers the requests of one connection. The first one arrived with the connection, since
// whoever measures counts its set-up.
func (p *protocol) serve(w *wire, caller int, script *Script) {
	defer func() { _ = syscall.Close(w.fd) }()
	_ = syscall.SetsockoptInt(w.fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	// Without it the moment of waking up has to do.
	_ = syscall.SetsockoptInt(w.fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
	var connection net.Conn = w
	if p.tls != nil {
		connection = tls.Server(w, p.tls)
	}
	if p.second {
		p.serveStreams(connection, w, caller, script)
		return
	}
	buffer := make([]byte, 4096)
	for held := 0; ; held = 0 {
		for !bytes.HasSuffix(buffer[:held], []byte("\r\n\r\n")) {
			n, err := connection.Read(buffer[held:])
			if err != nil {
				return
			}
			held += n
		}
		arrived := w.arrived
		_, path, _ := bytes.Cut(buffer[:held], []byte(" "))
		path, _, _ = bytes.Cut(path, []byte(" "))
		if string(path) == "/healthz" {
			if _, err := connection.Write(answer); err != nil {
				return
			}
			caller = 0
			continue
		}
		of := script.Of(string(path))
		end := script.Begin(of, arrived)
		if p.pieces > 1 {
			if p.trickle(connection, arrived, end) != nil {
				return
			}
		} else {
			sleepUntil(end)
			if _, err := connection.Write(answer); err != nil {
				return
			}
		}
		script.End(of, arrived, p.callers.since(caller), w.left)
		caller = 0
	}
}

// trickle sends an answer in pieces, the last one at the end.
func (p *protocol) trickle(to io.Writer, begin, end int64) error {
	for n := 1; n <= p.pieces; n++ {
		var piece []byte
		if n == 1 {
			piece = append(piece, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"...)
		}
		piece = append(piece, "2\r\nok\r\n"...)
		if n == p.pieces {
			piece = append(piece, "0\r\n\r\n"...)
		}
		sleepUntil(begin + (end-begin)*int64(n)/int64(p.pieces))
		if _, err := to.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// counted counts how often something was read.
type counted struct {
	io.Reader
	times int
}

func (c *counted) Read(to []byte) (int, error) {
	n, err := c.Reader.Read(to)
	c.times++
	return n, err
}

// ok is an answer's header fields, which need no table: status 200, content-length 2.
var ok = []byte{0x88, 0x0f, 0x0d, 0x01, '2'}

// serveStreams answers requests of HTTP/2, each in a thread of its own.
func (p *protocol) serveStreams(connection net.Conn, w *wire, caller int, script *Script) {
	source := &counted{Reader: connection}
	reader := bufio.NewReader(source)
	var out bytes.Buffer
	framer := http2.NewFramer(&out, reader)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var mutex sync.Mutex
	send := func(frames func()) int64 {
		mutex.Lock()
		defer mutex.Unlock()
		out.Reset()
		frames() // into memory
		_, _ = connection.Write(out.Bytes())
		return w.left
	}
	if _, err := reader.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	send(func() { _ = framer.WriteSettings() })
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				send(func() { _ = framer.WriteSettingsAck() })
			}
		case *http2.MetaHeadersFrame:
			stream, arrived, with := f.StreamID, w.arrived, caller
			if source.times > 1 {
				with = 0
			}
			path := f.PseudoValue("path")
			asked, of := path != "/healthz", script.Of(path)
			// Whoever measures opened it for this request. Others that waited for it were due later: taken
			// for as early, they would make the whole schedule begin before it did.
			caller = 0
			go func() {
				if asked {
					sleepUntil(script.Begin(of, arrived))
				}
				left := send(func() {
					_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: ok, EndHeaders: true})
					_ = framer.WriteData(stream, true, answer[len(answer)-2:])
				})
				if asked {
					script.End(of, arrived, p.callers.since(with), left)
				}
			}()
		}
	}
}
