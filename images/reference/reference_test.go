package main

import (
	"net"
	"runtime"
	"testing"
	"time"
)

func TestSettingsSayWhichVariableIsWrong(t *testing.T) {
	if _, err := read(); err == nil {
		t.Fatal("no database was accepted")
	}
	t.Setenv("DATABASE_URL", "postgresql://laptime@localhost/laptime")
	t.Setenv("SLOTS", "3")
	t.Setenv("HOLD", "20ms")
	s, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if s.slots != 3 || s.hold != 20*time.Millisecond || s.port != 8080 || s.workers != 1 {
		t.Fatalf("read %+v", s)
	}
	for name, text := range map[string]string{"SLOTS": "-1", "HOLD": "20", "ROWS": "many", "LOCK": "table"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, text)
			if _, err := read(); err == nil {
				t.Fatalf("%s=%s was accepted", name, text)
			}
		})
	}
}

func TestBurnUsesTheCPUTimeThatItIsTold(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used()
	burn(20 * time.Millisecond)
	if spent := used() - before; spent < 20*time.Millisecond {
		t.Fatalf("only %v were used", spent)
	}
}

func TestALaterWorkerHasOneConnectionAtATime(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	one := &oneAtATime{Listener: socket, free: make(chan struct{}, 1)}
	for range 2 {
		client, err := net.Dial("tcp", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	accepted := make(chan net.Conn)
	go func() {
		for range 2 {
			connection, err := one.Accept()
			if err != nil {
				t.Error(err)
			}
			accepted <- connection
		}
	}()
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("the second connection was taken beside the first one")
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	(<-accepted).Close()
}
