// Command server is a server whose truth is known: it takes exactly the time that it is told to,
// has exactly the capacity that it is told to, and stands still when it is told to. It notes when
// each request arrived and when its answer left.
//
// It prints its address and serves until its standard input ends; then it writes a line
// "<arrived> <left> <endpoint>" (unix time in nanoseconds) for each request to the file of -record.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

var answer = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")

func main() {
	services := flag.String("services", "1:2ms", "share:time of each class of requests, comma-separated")
	var named endpoints
	flag.Var(&named, "endpoint", "name=share:time,...: what /name takes, in place of -services; as often as wanted")
	pieces := flag.Int("pieces", 1, "of an answer: more than one leave as chunks, evenly over its time")
	workers := flag.Int("workers", 0, "requests served at a time; 0: any number")
	stallAfter := flag.Duration("stall-after", 0, "from the first request to the stall")
	stall := flag.Duration("stall", 0, "how long no request is begun")
	vary := flag.Float64("vary", 0, "by which share of it the capacity varies, with workers")
	record := flag.String("record", "", "file for what was measured")
	second := flag.Bool("http2", false, "speak HTTP/2, in place of HTTP/1.1")
	encrypt := flag.Bool("tls", false, "speak TLS, with a certificate that nobody knows")
	flag.Parse()
	classes, err := parseClasses(*services)
	if err != nil {
		fatal(err)
	}
	// Each connection has a thread that is woken by the kernel; none may wait for a processor of
	// Go's scheduler or for the collector.
	runtime.GOMAXPROCS(256)
	debug.SetGCPercent(-1)
	named = append(named, &Endpoint{Name: "list", Classes: classes})
	script := &Script{Endpoints: named, StallAfter: *stallAfter, Stall: *stall, Vary: *vary, free: make([]int64, *workers)}
	listener, port, err := listen()
	if err != nil {
		fatal(err)
	}
	how := &protocol{second: *second, pieces: *pieces}
	if *encrypt {
		if how.tls, err = secured(*second); err != nil {
			fatal(err)
		}
	}
	if how.callers, err = watchCallers(port); err != nil {
		fatal(fmt.Errorf("seeing who calls needs the right to see packets (CAP_NET_RAW): %w", err))
	}
	go accept(listener, script, how)
	fmt.Printf("127.0.0.1:%d\n", port)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if *record != "" {
		if err := write(*record, script.Served()); err != nil {
			fatal(err)
		}
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func listen() (fd, port int, err error) {
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("socket: %w", err)
	}
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, 0, fmt.Errorf("bind: %w", err)
	}
	if err = syscall.Listen(fd, 4096); err != nil {
		return 0, 0, fmt.Errorf("listen: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, 0, fmt.Errorf("getsockname: %w", err)
	}
	return fd, name.(*syscall.SockaddrInet4).Port, nil
}

func accept(listener int, script *Script, how *protocol) {
	for {
		fd, from, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
			go how.serve(&wire{fd: fd}, from.(*syscall.SockaddrInet4).Port, script)
		case syscall.EINTR, syscall.ECONNABORTED:
		default:
			fatal(fmt.Errorf("accept: %w", err))
		}
	}
}

// received gives when the kernel took in what was just read: a thread that is woken up late does not
// make a request arrive late.
func received(control []byte) int64 {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return now()
	}
	for _, message := range messages {
		if message.Header.Level == syscall.SOL_SOCKET && message.Header.Type == syscall.SCM_TIMESTAMPNS {
			return (*syscall.Timespec)(unsafe.Pointer(&message.Data[0])).Nano()
		}
	}
	return now()
}

const (
	realtime        = 0 // CLOCK_REALTIME, by which the kernel stamps what it receives
	absolute        = 1 // TIMER_ABSTIME
	setTimerSlack   = 29
	microsOfSpin    = 30
	sharpNanosecond = 1
)

// now is the time of day in nanoseconds.
func now() int64 {
	var t syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, realtime, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// sleepUntil sleeps in the kernel, without its usual slack of 50 µs, and for the last bit not at all.
func sleepUntil(end int64) {
	t := syscall.NsecToTimespec(end - int64(microsOfSpin*time.Microsecond))
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, sharpNanosecond, 0)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, realtime, absolute, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	for now() < end {
	}
}

func write(path string, served []Served) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	var line []byte
	for _, one := range served {
		line = strconv.AppendInt(line[:0], one.Arrived, 10)
		line = append(line, ' ')
		line = strconv.AppendInt(line, one.Left, 10)
		line = append(append(line, ' '), one.Of.Name...)
		_, _ = out.Write(append(line, '\n')) // Flush says whether it worked
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
