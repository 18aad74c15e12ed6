// SPDX-License-Identifier: MIT

// heapcheck derives the profiles that heapprof writes from its full one, by other code in another language, with nothing but the
// standard library:
//
//	heapcheck rows FILE         the rows of a file
//	heapcheck inuse FULL        the in-use profile: alloc columns zero, rows that are all zero dropped
//	heapcheck alloc FULL        the allocation profile: two columns
//	heapcheck delta FULL FULL   the allocations between two, and the time between them
//	heapcheck check FILE        refuses what is not four sample types in order
//
// A row is printed as its values and its stack of function names and module offsets, sorted; a last line says "duration N".
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

type field struct {
	number, wire int
	value        uint64
	bytes        []byte
}

var errCut = errors.New("message is cut")

func varint(b []byte) (uint64, []byte, error) {
	var v uint64
	for i := 0; i < len(b) && i < 10; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], nil
		}
	}
	return 0, nil, errCut
}

func fields(b []byte) ([]field, error) {
	var out []field
	for len(b) > 0 {
		key, rest, err := varint(b)
		if err != nil {
			return nil, err
		}
		f := field{number: int(key >> 3), wire: int(key & 7)}
		if f.value, rest, err = varint(rest); err != nil {
			return nil, err
		}
		switch f.wire {
		case 0:
		case 2:
			if f.value > uint64(len(rest)) {
				return nil, errCut
			}
			f.bytes, rest = rest[:f.value], rest[f.value:]
		default:
			return nil, fmt.Errorf("wire type %d", f.wire)
		}
		out = append(out, f)
		b = rest
	}
	return out, nil
}

func (f field) numbers() []uint64 {
	if f.wire == 0 {
		return []uint64{f.value}
	}
	var out []uint64
	for b := f.bytes; len(b) > 0; {
		v, rest, err := varint(b)
		if err != nil {
			return out
		}
		out, b = append(out, v), rest
	}
	return out
}

func message(b []byte) map[int]uint64 {
	out := map[int]uint64{}
	fs, _ := fields(b)
	for _, f := range fs {
		out[f.number] = f.value
	}
	return out
}

type profile struct {
	strings        []string
	types          [][2]string
	rows           map[string][]int64
	time, duration int64
}

func read(path string) (*profile, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	fs, err := fields(data)
	if err != nil {
		return nil, err
	}
	p := &profile{rows: map[string][]int64{}}
	mappings, functions := map[uint64]map[int]uint64{}, map[uint64]map[int]uint64{}
	for _, f := range fs {
		switch f.number {
		case 3:
			m := message(f.bytes)
			mappings[m[1]] = m
		case 5:
			m := message(f.bytes)
			functions[m[1]] = m
		case 6:
			p.strings = append(p.strings, string(f.bytes))
		case 9:
			p.time = int64(f.value)
		case 10:
			p.duration = int64(f.value)
		}
	}
	text := func(i uint64) string {
		if i >= uint64(len(p.strings)) {
			return "?"
		}
		return p.strings[i]
	}
	locations := map[uint64]string{}
	for _, f := range fs {
		switch f.number {
		case 1:
			m := message(f.bytes)
			p.types = append(p.types, [2]string{text(m[1]), text(m[2])})
		case 4:
			m := message(f.bytes)
			inner, _ := fields(f.bytes)
			name := ""
			for _, g := range inner {
				if g.number == 4 {
					name += text(functions[message(g.bytes)[1]][2])
				}
			}
			if module, ok := mappings[m[2]]; ok {
				name += fmt.Sprintf("@%s+%x", filepath.Base(text(module[5])), m[3]-module[2]+module[4])
			}
			locations[m[1]] = strings.ReplaceAll(name, " ", "_")
		}
	}
	for _, f := range fs {
		if f.number != 2 {
			continue
		}
		var stack []string
		var values []int64
		inner, err := fields(f.bytes)
		if err != nil {
			return nil, err
		}
		for _, g := range inner {
			switch g.number {
			case 1:
				for _, id := range g.numbers() {
					stack = append(stack, locations[id])
				}
			case 2:
				for _, v := range g.numbers() {
					values = append(values, int64(v))
				}
			}
		}
		if len(values) != len(p.types) {
			return nil, fmt.Errorf("mismatch: sample has %d values vs. %d types", len(values), len(p.types))
		}
		key := strings.Join(stack, " ")
		p.rows[key] = add(p.rows[key], values)
	}
	return p, nil
}

func add(a, b []int64) []int64 {
	if a == nil {
		return b
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

var want = [][2]string{{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}}

// check is what the collector of such profiles asks before it takes one.
func (p *profile) check() error {
	if len(p.types) != len(want) {
		return fmt.Errorf("invalid heap profile: got %d sample types, want %d", len(p.types), len(want))
	}
	for i, t := range p.types {
		if t != want[i] {
			return fmt.Errorf("invalid heap profile: got %q sample type at index %d, want %q", t[0], i, want[i][0])
		}
	}
	return nil
}

func (p *profile) only(columns ...int) {
	for key, v := range p.rows {
		out := []int64{}
		for _, c := range columns {
			if c < 0 {
				out = append(out, 0)
			} else {
				out = append(out, v[c])
			}
		}
		p.rows[key] = out
	}
}

func (p *profile) print() {
	var lines []string
	for key, v := range p.rows {
		line, zero := "", true
		for _, x := range v {
			line += fmt.Sprintf("%d ", x)
			zero = zero && x == 0
		}
		if !zero {
			lines = append(lines, line+key)
		}
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
	fmt.Println("duration", p.duration)
}

func run(verb string, files []string) error {
	var all []*profile
	for _, f := range files {
		p, err := read(f)
		if err != nil {
			return err
		}
		if verb != "rows" {
			if err := p.check(); err != nil {
				return err
			}
		}
		all = append(all, p)
	}
	p := all[len(all)-1]
	switch verb {
	case "check":
		return nil
	case "inuse":
		p.only(-1, -1, 2, 3)
	case "alloc":
		p.only(0, 1)
	case "delta":
		for key, old := range all[0].rows {
			now, ok := p.rows[key]
			if !ok || now[0] < old[0] || now[1] < old[1] {
				return fmt.Errorf("a row shrank: %s", key)
			}
			now[0] -= old[0]
			now[1] -= old[1]
		}
		p.only(0, 1)
		p.duration = p.time - all[0].time
	}
	p.print()
	return nil
}

func main() {
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
