package database

import (
	"reflect"
	"strings"
	"testing"
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
