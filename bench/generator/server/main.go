// Command server answers every request with the same small JSON, as fast as Go lets it: what a
// load generator costs shows best against a server that costs little. It prints the address it
// listens on (loopback only) and ends when its standard input does.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
)

const body = `{"user_id":"5f1d7a84","username":"ada","email":"ada@example.org"}`

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		connection, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		go serve(connection)
	}
}

func answer(connection string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s",
		len(body), connection, body)
}

// serve answers requests without a body until the client closes or asks to.
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

// readRequest reads one head and says whether the client wants the connection closed: HTTP/1.0
// without, HTTP/1.1 with a word about it.
func readRequest(reader *bufio.Reader) (closing bool, err error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	closing = bytes.Contains(line, []byte("HTTP/1.0"))
	for {
		if line, err = reader.ReadSlice('\n'); err != nil {
			return false, err
		}
		if len(line) <= 2 {
			return closing, nil
		}
		if line[0]|0x20 != 'c' || !bytes.EqualFold(line[:min(11, len(line))], []byte("connection:")) {
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
