package main

import (
	"io"
	"net/http"

	"github.com/gorilla/websocket"
)

// upgrader takes a WebSocket from wherever it comes: nobody is logged in here.
var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// echo gives back each message of a WebSocket until the other side ends it.
func echo(w http.ResponseWriter, r *http.Request) {
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // who asked has been told
	}
	defer func() { _ = connection.Close() }()
	for {
		kind, message, err := connection.ReadMessage()
		if err != nil || connection.WriteMessage(kind, message) != nil {
			return
		}
	}
}

const internalError = "13" // a status of gRPC

// call answers a call of gRPC with what it says: where question and answer are of one type, their bytes are the same.
func call(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	status := "0"
	if _, err := io.Copy(w, r.Body); err != nil {
		status = internalError
	}
	w.Header().Set("Grpc-Status", status)
}
