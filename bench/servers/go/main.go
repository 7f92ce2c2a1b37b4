// Command book-go serves the scenario posts with net/http and pgx, as their documentation shows it.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"runtime"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type post struct {
	ID    int32  `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

// number reads a variable of the contract, docs/servers.md.
func number(name string) int {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	return value
}

func main() {
	runtime.GOMAXPROCS(number("WORKERS"))
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = int32(number("DATABASE_CONNECTIONS"))
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	http.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /posts", func(w http.ResponseWriter, r *http.Request) {
		// An error of the query is one of its rows too.
		rows, _ := pool.Query(r.Context(), "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10")
		posts, err := pgx.CollectRows(rows, pgx.RowToStructByName[post])
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(posts); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
