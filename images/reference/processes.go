package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// workerVariable is the number of a worker process, which the first process sets for it.
const workerVariable = "WORKER_PROCESS"

// inherited is the descriptor of the socket that all worker processes accept from.
const inherited = 3

// The main function of a worker process stays in its main thread, where all that is to be computed is,
// as in most servers that have several processes.
func init() {
	if os.Getenv(workerVariable) != "" {
		runtime.LockOSThread()
	}
}

// listen returns what a process accepts connections from. The second worker process and all later
// ones have one connection at a time, and the first has the others: uneven, whoever connects.
func listen(port int) (net.Listener, error) {
	number := os.Getenv(workerVariable)
	if number == "" {
		return net.Listen("tcp", fmt.Sprintf(":%d", port))
	}
	shared, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil || number == "1" {
		return shared, err
	}
	return &oneAtATime{Listener: shared, free: make(chan struct{}, 1)}, nil
}

// fork serves by worker processes that share a socket, and ends when one of them does.
func fork(port, count int, stopped <-chan struct{}) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	ended := make(chan error, count)
	var workers []*exec.Cmd
	for number := 1; number <= count; number++ {
		worker := exec.Command(os.Args[0])
		worker.Env = append(os.Environ(), fmt.Sprintf("%s=%d", workerVariable, number))
		worker.ExtraFiles = []*os.File{socket}
		worker.Stdout, worker.Stderr = os.Stdout, os.Stderr
		if err := worker.Start(); err != nil {
			return err
		}
		workers = append(workers, worker)
		go func() { ended <- worker.Wait() }()
	}
	running := count
	select {
	case <-stopped:
	case err = <-ended:
		running--
	}
	for _, worker := range workers {
		_ = worker.Process.Signal(syscall.SIGTERM)
	}
	for ; running > 0; running-- {
		<-ended
	}
	return err
}

// oneAtATime accepts a connection when the one before is closed.
type oneAtATime struct {
	net.Listener
	free chan struct{}
}

func (l *oneAtATime) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	connection, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &only{Conn: connection, closed: sync.OnceFunc(func() { <-l.free })}, nil
}

type only struct {
	net.Conn
	closed func()
}

func (c *only) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
