package session

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Use is in which order the rows of a feeder are taken.
type Use uint8

// Cycle: in turn, and from the start again after the last one; Once: each at most once in a trial;
// Random: any of them, by the seed.
const (
	Cycle Use = iota
	Once
	Random
)

// Feeder gives rows of values. All loops of a generator take from it together, and all phases of a
// trial go on where the phase before has ended.
type Feeder struct {
	Name       string
	Use        Use
	PerRequest bool // a row for each request that uses it, and not for each session

	rows    int64 // in all
	first   int64 // of this generator's part
	count   int64 // of this generator's part
	next    atomic.Int64
	limit   atomic.Int64 // once: how many may have been taken by now
	seed    uint64
	numbers int64    // the first one, of a feeder without columns
	columns []string // names; one without a name where there is only one
	cells   [][]string
	made    []variant
}

// variant is a column as it stands in requests.
type variant struct {
	column   int
	encoding encoding
	values   [][]byte
}

// Numbers makes a feeder of the whole numbers first … last.
func Numbers(name string, first, last int64) (*Feeder, error) {
	if first < 0 || last < first {
		return nil, fmt.Errorf("range: %d … %d holds no number; write 0 <= first <= last", first, last)
	}
	return &Feeder{Name: name, rows: last - first + 1, numbers: first}, nil
}

// Values makes a feeder of a list.
func Values(name string, values []string) (*Feeder, error) {
	if len(values) == 0 {
		return nil, errors.New("values: empty; write at least one")
	}
	return &Feeder{Name: name, rows: int64(len(values)), columns: []string{""}, cells: [][]string{values}}, nil
}

// maxRows is how many rows a table may have.
const maxRows = 1_000_000

// Table makes a feeder of CSV (RFC 4180) whose first line has the names of the columns.
func Table(name string, text io.Reader) (*Feeder, error) {
	reader := csv.NewReader(text)
	reader.ReuseRecord = true
	head, err := reader.Read()
	if err == io.EOF {
		return nil, errors.New("csv: empty; write the names of the columns in its first line")
	}
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	f := &Feeder{Name: name, cells: make([][]string, len(head))}
	for i, column := range head {
		column = strings.TrimSpace(column)
		if i == 0 {
			column = strings.TrimPrefix(column, "\ufeff")
		}
		if !IsName(column) || slices.Contains(f.columns, column) {
			return nil, fmt.Errorf("csv: column %d is called %q; write different names of letters, digits, _ and -", i+1, column)
		}
		f.columns = append(f.columns, column)
	}
	for ; ; f.rows++ {
		row, err := reader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("csv: %w", err)
		}
		if f.rows == maxRows {
			return nil, fmt.Errorf("csv: more than %d rows", maxRows)
		}
		for i, cell := range row {
			f.cells[i] = append(f.cells[i], strings.Clone(cell))
		}
	}
	if f.rows == 0 {
		return nil, errors.New("csv: no row after the names of the columns; write at least one")
	}
	return f, nil
}

// Rows is how many rows it has, over all generators.
func (f *Feeder) Rows() int64 { return f.rows }

// Share leaves to a generator its part of the rows, so that no two generators take the same. A random
// one draws from all of them, by the seed.
func (f *Feeder) Share(first, count int64, seed uint64) {
	f.first, f.count, f.seed = first, count, seed
	if f.Use == Random {
		f.first, f.count = 0, f.rows
	}
	f.limit.Store(f.count)
}

// Limit says how many rows of its part may have been taken by the end of a phase, where each is
// taken once.
func (f *Feeder) Limit(rows int64) { f.limit.Store(min(max(rows, 0), f.count)) }

// Part is how many rows this generator has.
func (f *Feeder) Part() int64 { return f.count }

// take gives the next row; false: all have been used.
func (f *Feeder) take() (row int64, ok bool) {
	switch f.Use {
	case Once:
		for {
			n := f.next.Load()
			if n >= f.limit.Load() {
				return 0, false
			}
			if f.next.CompareAndSwap(n, n+1) {
				return f.first + n, true
			}
		}
	case Random:
		high, _ := bits.Mul64(Mixed(f.seed, uint64(f.next.Add(1))), uint64(f.count))
		return int64(high), true
	}
	return f.first + (f.next.Add(1)-1)%f.count, true
}

// Mixed is the n-th number of the sequence of a seed, as splitmix64 (Steele, Lea and Flood, 2014,
// "Fast splittable pseudorandom number generators") has it: any of them without those before.
func Mixed(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// find gives the number of a column; the empty name is that of a feeder with one column.
func (f *Feeder) find(column string) (int, error) {
	if f.columns == nil || f.columns[0] == "" {
		if column != "" {
			return 0, fmt.Errorf("feeder %s has no columns; write {{%s}}", f.Name, f.Name)
		}
		return 0, nil
	}
	for i, name := range f.columns {
		if name == column {
			return i, nil
		}
	}
	return 0, fmt.Errorf("feeder %s has no column %q; it has {{%s.%s}}", f.Name, column, f.Name, strings.Join(f.columns, "}}, {{"+f.Name+"."))
}

// variant makes a column ready for a place and gives its number.
func (f *Feeder) variant(column int, e encoding, p place) (int, error) {
	if f.columns == nil {
		return 0, nil // numbers may stand anywhere
	}
	ready := variant{column: column, encoding: e}
	for i, cell := range f.cells[column] {
		value := e.append(nil, []byte(cell))
		if !p.takes(value) {
			return 0, fmt.Errorf("feeder %s, row %d: %.40q cannot stand here; leave control characters and blanks out, or write {{... | url}}", f.Name, i+1, cell)
		}
		ready.values = append(ready.values, value)
	}
	f.made = append(f.made, ready)
	return len(f.made) - 1, nil
}

// append adds a value of a row.
func (f *Feeder) append(to []byte, row int64, variant int) []byte {
	if f.columns == nil {
		return strconv.AppendInt(to, f.numbers+row, 10)
	}
	return append(to, f.made[variant].values[row]...)
}

// longest is the length of a variant's longest value.
func (f *Feeder) longest(variant int) int {
	if f.columns == nil {
		return len("9223372036854775807")
	}
	longest := 0
	for _, value := range f.made[variant].values {
		longest = max(longest, len(value))
	}
	return longest
}
