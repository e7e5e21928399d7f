// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package shim

import "syscall"

// Order is what a shim does. It is passed through a pipe, as a sequence of 32-bit numbers in which the length precedes
// each text and each list.
type Order struct {
	// Path is the file of the program, Args are its arguments, the first being its name, and Env is its environment.
	Path      string
	Args, Env []string
	Limits    []Limit
	// Processes is the limit of processes of the program's control group, as text; empty if it has none.
	Processes string
	// Confined puts the program into a sandbox. What follows applies only then.
	Confined bool
	// SelfRights are the Landlock rights to the program's own entry in /proc.
	SelfRights uint64
	// Filter is the seccomp filter, and Seccomp the number of the system call that installs it.
	Filter  []syscall.SockFilter
	Seccomp uint32
	// NoSockets says that making a socket must fail, and Closed are paths that it must not be possible to open.
	NoSockets bool
	Closed    []string
}

// Limit is a resource limit of a process (see setrlimit(2)), used as both the soft and the hard limit.
type Limit struct {
	Resource int
	Value    uint64
}

// set lowers the limit of this process. A hard limit that is already lower stays.
func (l Limit) set() error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(l.Resource, &old); err != nil {
		return err
	}
	value := min(l.Value, old.Max)
	return syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: value, Max: value})
}

// Encode returns the order as it is passed.
func (o Order) Encode() []byte {
	b := writer{}
	b.text(o.Path)
	b.texts(o.Args)
	b.texts(o.Env)
	b.number(uint64(len(o.Limits)))
	for _, l := range o.Limits {
		b.number(uint64(l.Resource))
		b.long(l.Value)
	}
	b.text(o.Processes)
	b.truth(o.Confined)
	b.long(o.SelfRights)
	b.number(uint64(len(o.Filter)))
	for _, f := range o.Filter {
		b.number(uint64(f.Code)<<16 | uint64(f.Jt)<<8 | uint64(f.Jf))
		b.number(uint64(f.K))
	}
	b.number(uint64(o.Seccomp))
	b.truth(o.NoSockets)
	b.texts(o.Closed)
	return b
}

// Decode returns the order in b. It returns false if b is not exactly one order.
func Decode(b []byte) (Order, bool) {
	r := reader{rest: b}
	o := Order{Path: r.text(), Args: r.texts(), Env: r.texts()}
	for range r.count() {
		o.Limits = append(o.Limits, Limit{Resource: int(r.number()), Value: r.long()})
	}
	o.Processes = r.text()
	o.Confined, o.SelfRights = r.number() == 1, r.long()
	for range r.count() {
		code := r.number()
		o.Filter = append(o.Filter, syscall.SockFilter{Code: uint16(code >> 16), Jt: uint8(code >> 8), Jf: uint8(code), K: r.number()})
	}
	o.Seccomp, o.NoSockets, o.Closed = r.number(), r.number() == 1, r.texts()
	return o, !r.broken && len(r.rest) == 0
}

type writer []byte

func (w *writer) number(n uint64) { *w = append(*w, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }

func (w *writer) long(n uint64) {
	w.number(n)
	w.number(n >> 32)
}

func (w *writer) truth(b bool) {
	if b {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	*w = append(*w, s...)
}

func (w *writer) texts(list []string) {
	w.number(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

// reader reads what a writer wrote. It is broken after it read beyond the end, and returns zeros from then on.
type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) take(n int) []byte {
	if r.broken || n < 0 || n > len(r.rest) {
		r.broken = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (r *reader) long() uint64 {
	low := uint64(r.number())
	return low | uint64(r.number())<<32
}

// count reads the length of a list, each of whose entries has at least one number.
func (r *reader) count() int {
	n := int(r.number())
	if n < 0 || n > len(r.rest)/4 {
		r.broken = true
		return 0
	}
	return n
}

func (r *reader) text() string { return string(r.take(int(r.number()))) }

func (r *reader) texts() []string {
	var list []string
	for range r.count() {
		list = append(list, r.text())
	}
	return list
}
