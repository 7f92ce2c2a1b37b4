package database

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestSinceCountsOnlyWhatRanInBetween(t *testing.T) {
	before := []Statement{{"SELECT 1", 10}, {"BEGIN", 3}}
	after := []Statement{{"SELECT 1", 15}, {"BEGIN", 3}, {"SELECT 2", 2}}
	want := []Statement{{"SELECT 1", 5}, {"SELECT 2", 2}}
	if got := Since(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestThatNothingRanIsNotThatNobodyCounted(t *testing.T) {
	if got := Since([]Statement{{"SELECT 1", 5}}, []Statement{{"SELECT 1", 5}}); got == nil {
		t.Error("nothing ran: want an empty list, got nil")
	}
	if got := Since(nil, nil); got != nil {
		t.Errorf("nobody counted: want nil, got %v", got)
	}
}

func TestAnErrorDoesNotShowThePassword(t *testing.T) {
	err := Reset(t.Context(), "postgresql://u:geheim@127.0.0.1:1/d?sslmode=disable", []string{"SELECT 1"})
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v", err)
	}
}

func TestAStatementIsWrongByItselfOrPostgresIsInTheWay(t *testing.T) {
	for code, wrong := range map[string]bool{
		"42P01": true, "42601": true, "22012": true, "23505": true, "P0001": true, "42501": true,
		"40P01": false, "40001": false, "53100": false, "55P03": false, "57014": false, "57P01": false, "08006": false, "": false,
	} {
		err := fmt.Errorf("reset: %w", &pgconn.PgError{Code: code})
		if IsOfStatement(err) != wrong {
			t.Errorf("%s: %v", code, !wrong)
		}
	}
	if IsOfStatement(errors.New("42P01")) {
		t.Error("an error of the connection")
	}
}

// What a real one answers is compared in images/servers/tests/test_generator.py.
func TestASchemaThatNobodyCanAskForIsNone(t *testing.T) {
	nowhere := "postgresql://u:p@127.0.0.1:1/d?sslmode=disable"
	for _, asked := range [][2]string{{"", "SELECT 1"}, {nowhere, ""}, {nowhere, "SELECT 1"}} {
		if got := Schema(t.Context(), asked[0], asked[1]); got != "" {
			t.Errorf("%v: got %q", asked, got)
		}
	}
}
